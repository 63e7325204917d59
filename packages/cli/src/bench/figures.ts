/** The figures of one loop over one size. */
export interface Figures {
  /** Mean over iterations and ranks. */
  readonly microseconds: number
  /** GB/s (10^9 bytes): bytes of the larger side of a rank per time. */
  readonly algorithmBandwidth: number
  /**
   * GB/s over the links, at the minimum traffic of the operation. Use it to compare operations and numbers of ranks.
   */
  readonly busBandwidth: number
  /** Wrong elements over all ranks; null without a check. */
  readonly wrong: number | null
}

/** A row of the table of collectives. */
export interface CollectiveRow {
  readonly operation: string
  readonly bytes: number
  readonly count: number
  readonly dtype: string
  readonly op: string | null
  readonly root: number | null
  readonly outOfPlace: Figures | null
  readonly inPlace: Figures | null
}

/** The figures of one loop over one size. */
export interface Figures {
  /** Mean over iterations and ranks. */
  readonly microseconds: number
  /** GB/s (10^9 bytes): bytes of the larger side of a rank, in that time. */
  readonly algorithmBandwidth: number
  /** GB/s over the links that the operation needs at least, by which operations and numbers of ranks compare. */
  readonly busBandwidth: number
  /** Wrong elements, over all ranks; null where nothing was compared. */
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

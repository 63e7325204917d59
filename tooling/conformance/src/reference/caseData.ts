/** Reads the cases that are kept as data files, with one step, attribute or case per line. */
import { readFileSync } from 'node:fs'
import type { LaunchAttributeInputs, Named, PoolCase, StreamCase } from './cases.js'

/** A step without the settings that most kernels share. */
interface StepData {
  readonly do: string
  readonly steps?: readonly StepData[]
  readonly bodies?: readonly (readonly StepData[])[]
}

export interface CaseData {
  readonly graphs: Readonly<Record<'by hand' | 'captured', Readonly<Record<string, readonly StepData[]>>>>
  readonly attributes: Readonly<Record<string, LaunchAttributeInputs>>
  /** A case without a name is named by its attributes. */
  readonly streams: readonly Partial<Named & StreamCase>[]
  readonly pools: readonly (Named & Partial<PoolCase>)[]
}

const file = new URL('../../questions/reference.json', import.meta.url)

export const caseData = JSON.parse(readFileSync(file, 'utf8')) as CaseData

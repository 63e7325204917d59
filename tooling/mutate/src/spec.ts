import type { Mutant } from './mutant.js'

/** Facts in a spec by kind: the pattern that finds a fact, and a function that returns a wrong value for it. */
const facts: Readonly<Record<string, readonly [RegExp, (said: string) => string]>> = {
  'a constant': [/(?<="value":")\d+(?=","kind":"number")/g, (value) => `${BigInt(value) + 1n}`],
  'an enumerator': [/(?<=\["\w+",)\d+(?=\])/g, (value) => `${Number(value) + 1}`],
  'a size as an integer': [/\{"kind":"size"\}/g, () => '{"kind":"integer","type":"i32"}'],
  'an integer of another sign': [/(?<="kind":"integer","type":")i32(?=")/g, () => 'u32'],
  'a 64-bit integer': [/(?<="kind":"integer","type":")[iu]64(?=")/g, () => 'i32'],
  'a version': [/(?<="since":)\d+/g, (value) => `${Number(value) + 1}`],
  'an offset': [/(?<="offset":)[1-9]\d*/g, (value) => `${Number(value) + 4}`],
  'a field': [/(?<="type":\{"kind":")u(?=(?:32|64)"\})/g, () => 'i'],
}

/** Returns the mutants of a spec, one list for each kind, because some kinds have far more mutants than others. */
export function specMutants(file: string, text: string): Mutant[][] {
  return Object.entries(facts).map(([kind, [pattern, wrong]]) =>
    [...text.matchAll(pattern)].map(({ index, 0: said }) => ({
      kind,
      file,
      start: index,
      end: index + said.length,
      replacement: wrong(said),
    })),
  )
}

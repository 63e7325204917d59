import { fileURLToPath } from 'node:url'
import { SubjectProcess } from './subjectProcess.js'
import type { Subject } from './turns.js'

const child = fileURLToPath(new URL('nodeSubjectsChild.js', import.meta.url))

/** What a module of subjects exports as `makeSubjects`, which is called in a process of its own. */
export type MakeSubjects = (words: readonly string[]) => readonly Subject[] | Promise<readonly Subject[]>

/** What a subject tells of itself. */
export type Told = Pick<Subject, 'name' | 'cases'>

/**
 * Starts subjects in a process of their own, as the programs in C have one. The process that asks starts all others and
 * reads what they answer: in it the same calls take up to a third longer, those of the driver alone, too.
 * @param module exports {@link MakeSubjects}
 */
export async function startNodeSubjects(
  module: URL,
  words: readonly (string | number)[] = [],
): Promise<{ readonly subjects: readonly Subject[]; readonly close: () => void }> {
  const [program, line] = await SubjectProcess.start('Node', process.execPath, [child, module.href, ...words])
  const subjects = (JSON.parse(line) as Told[]).map(
    ({ name, cases }): Subject => ({
      name,
      cases,
      measure: (test, count) => program.measure(JSON.stringify([name, test, count])),
    }),
  )
  return { subjects, close: () => program.close() }
}

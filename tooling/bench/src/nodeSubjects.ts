import { fileURLToPath } from 'node:url'
import { SubjectProcess } from './subjectProcess.js'
import type { Subject } from './turns.js'

const child = fileURLToPath(new URL('nodeSubjectsChild.js', import.meta.url))

/** The type of `makeSubjects`, which a subject module exports. It is called in a separate process. */
export type MakeSubjects = (words: readonly string[]) => readonly Subject[] | Promise<readonly Subject[]>

/** A subject's description of itself. */
export type Told = Pick<Subject, 'name' | 'cases'>

/**
 * Starts subjects in a separate process, like the C programs. The process that sends the requests also starts all other
 * processes and reads their answers, which makes calls in it up to a third slower, even plain driver calls.
 * @param module a module that exports {@link MakeSubjects}
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

// Runs subjects in a separate Node process: MODULE WORD …
import type { MakeSubjects, Told } from './nodeSubjects.js'
import { answerRequests } from './processes/serve.js'

const [module = '', ...given] = process.argv.slice(2)
const { makeSubjects } = (await import(module)) as { makeSubjects: MakeSubjects }
const subjects = await makeSubjects(given)
const told = subjects.map(({ name, cases }): Told => ({ name, cases }))
await answerRequests(JSON.stringify(told), (words) => {
  const [name, test, count] = JSON.parse(words.join(' ')) as [string, string, number]
  const subject = subjects.find((one) => one.name === name)
  if (subject === undefined) throw new Error(`there is no ${name} among ${told.map((one) => one.name).join(', ')}`)
  return subject.measure(test, count)
})
// All objects end with the process.
process.exit()

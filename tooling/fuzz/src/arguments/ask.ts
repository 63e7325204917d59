import { writeSync } from 'node:fs'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { AbortedError, TimeoutError } from '@shoal/types'
import { engineError, isNonsense, names } from './classify.js'
import type { Answer, Callable, Parameter } from './contract.js'
import { excluded } from './exclusions.js'
import { JunkError, junkKinds } from './junk.js'
import { subjectOf } from './subjects/index.js'
import { apiOf, rightValue, type Subject } from './subjects/subject.js'

/**
 * Milliseconds. If a call has not failed after this time, it accepted its arguments and waits for something that never
 * happens.
 */
const limit = 300

type Fn = (...args: unknown[]) => unknown

/** Asks all questions about one package in this process, and writes each answer as a line to file descriptor 3. */
export async function askPackage(packageName: string, callables: readonly Callable[]): Promise<void> {
  const subject = await subjectOf(packageName)
  for (const callable of callables) {
    if (callable.parameters.length === 0 || excluded(packageName, callable) !== undefined) continue
    await new Questions(subject, callable).askAll()
  }
  await subject.end?.()
  // This turn of the event loop shows errors that a refused call may have left behind.
  await turn()
  write({ kind: 'end' })
}

function write(answer: Answer): void {
  writeSync(3, `${JSON.stringify(answer)}\n`)
}

class Questions {
  readonly #subject: Subject
  readonly #callable: Callable
  readonly #api: string
  readonly #names: readonly string[]
  #object: unknown
  #right: unknown[] = []

  constructor(subject: Subject, callable: Callable) {
    this.#subject = subject
    this.#callable = callable
    this.#api = apiOf(callable)
    this.#names = names(callable, subject.module)
  }

  async askAll(): Promise<void> {
    const { parameters } = this.#callable
    try {
      await this.#begin()
    } catch (error) {
      write({ kind: 'unasked', api: this.#api, reason: String(error) })
      return
    }
    for (const [index, parameter] of parameters.entries()) {
      if (isConstant(parameter, parameters)) continue
      await this.#askParameter(parameter, parameter, (junk) => this.#argumentsWith(index, junk))
      for (const option of parameter.options) {
        await this.#askParameter(option, parameter, (junk) =>
          this.#argumentsWith(index, { ...(this.#right[index] as object), [option.name]: junk }),
        )
      }
    }
    dispose(this.#object)
  }

  /** Creates the object that owns the method, and the right value for each parameter. */
  async #begin(): Promise<void> {
    const { place, owner, parameters } = this.#callable
    if (place === 'method') {
      const make = this.#subject.instances[owner as string]
      if (make === undefined) throw new Error(`no instance of ${owner} is known`)
      this.#object = await make(this.#callable.name)
      if (this.#object === undefined) throw new Error(`there is no ${owner} here`)
    }
    this.#right = parameters.map((parameter) => this.#rightOf(parameter))
  }

  #rightOf(parameter: Parameter): unknown {
    if (parameter.options.length > 0) {
      const special = this.#subject.values[`${this.#api}#${parameter.name}`]
      return special === undefined ? this.#rightOptions(parameter) : special()
    }
    return rightValue(this.#subject, this.#api, parameter)
  }

  #rightOptions(parameter: Parameter): object {
    const needed = parameter.options.filter(({ kinds }) => !kinds.includes('undefined') && !kinds.includes('unknown'))
    return Object.fromEntries(needed.map((option) => [option.name, rightValue(this.#subject, this.#api, option)]))
  }

  #argumentsWith(index: number, junk: unknown): unknown[] {
    const args = this.#callable.parameters.flatMap((parameter, at): unknown[] => {
      const value = at === index ? (parameter.isRest ? [junk] : junk) : this.#right[at]
      return parameter.isRest && Array.isArray(value) ? value : [value]
    })
    return args
  }

  async #askParameter(asked: Parameter, whole: Parameter, argumentsWith: (junk: unknown) => unknown[]): Promise<void> {
    for (const kind of junkKinds) {
      // A check cannot tell a class from a function that may be called.
      if (kind.name === 'a class' && asked.kinds.includes('function')) continue
      await this.#ask(asked, whole, kind.name, kind.kind, argumentsWith(kind.make(asked)))
    }
    for (const [name, make] of Object.entries(this.#subject.foreignObjects)) {
      await this.#ask(asked, whole, name, 'object', argumentsWith(make()))
    }
  }

  async #ask(asked: Parameter, whole: Parameter, junk: string, kind: string, args: unknown[]): Promise<void> {
    const question = `${this.#api}: ${asked === whole ? asked.name : `${whole.name}.${asked.name}`} = ${junk}`
    const nonsense = isNonsense(this.#api, asked, junk, kind)
    // A right argument would end the only session of the process.
    if (!nonsense && /^Session\.(?:dispose|finalize)$/.test(this.#api)) return
    write({ kind: 'asking', question })
    let result: unknown
    try {
      result = await this.#call(args)
    } catch (error) {
      write({ kind: 'refused', question, ...this.#classify(error, asked, whole) })
      // The aborted call may still run, and then the next call would have to wait for it.
      if (error instanceof TimeoutError || error instanceof AbortedError) await delay(20)
      return
    }
    if (result === unanswered) await this.#begin()
    write({ kind: 'accepted', question, nonsense })
    dispose(result)
    if (this.#callable.place === 'method' && isDisposed(this.#object)) await this.#begin()
  }

  async #call(args: unknown[]): Promise<unknown> {
    const { place, owner, name } = this.#callable
    const { module } = this.#subject
    if (place === 'new') return new (module[owner as string] as new (...args: unknown[]) => unknown)(...args)
    const target = place === 'export' ? module : place === 'static' ? module[owner as string] : this.#object
    const result = ((target as { [name: string]: unknown })[name] as Fn).apply(target, args)
    if (!(result instanceof Promise)) return result
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, limit, unanswered)
    })
    try {
      return await Promise.race([result, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #classify(error: unknown, asked: Parameter, whole: Parameter): { typed: boolean; named: boolean; message: string } {
    if (error instanceof JunkError) return { typed: true, named: true, message: '' }
    const fault = engineError(error)
    const message =
      error instanceof Error
        ? `${error.name}: ${error.message} ${fault ? (error.stack ?? '').split('\n')[1] : ''}`
        : `threw ${typeof error}`
    if (fault) return { typed: false, named: false, message }
    if (!(error instanceof TypeError || error instanceof RangeError)) return { typed: true, named: true, message }
    const text = error.message
    const namesParameter = [asked.name, ...(whole === asked ? whole.options.map(({ name }) => name) : [])].some((one) =>
      new RegExp(`\\b${one}\\b`).test(text),
    )
    return { typed: true, named: namesParameter && this.#names.some((name) => text.startsWith(name)), message }
  }
}

/** Returns true for a constant that the caller of a check writes into its source: a name for error messages. */
function isConstant({ name, type }: Parameter, all: readonly Parameter[]): boolean {
  if (!/^string/.test(type)) return false
  return /^(?:api|parameter|expected|syscall)$/.test(name) || (name === 'name' && all.some((one) => one.name === 'api'))
}

const unanswered = Symbol('unanswered')

function isDisposed(object: unknown): boolean {
  return typeof object === 'object' && object !== null && (object as { disposed?: unknown }).disposed === true
}

/** Releases the result of an accepted call. */
function dispose(object: unknown): void {
  if (typeof object !== 'object' || object === null) return
  const name = object.constructor?.name ?? ''
  if (/^(?:Device|Context|Session|Communicator|SymmetricBuffer|Window|DeviceCommunicator|Team)$/.test(name)) return
  try {
    const { dispose: release } = object as { dispose?: () => unknown }
    if (typeof release !== 'function') return
    const done = release.call(object)
    if (done instanceof Promise) done.catch(() => undefined)
  } catch {
    // The object is in use or already disposed.
  }
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

// Changes one part of every instruction form in the tests' kernels to something that PTX does not have. The software
// device must refuse it instead of ignoring it.
Object.assign(process.env, { SHOAL_DEVICE: 'sim' })
const { Device, Module } = await import('@shoal/driver')

const device = Device.get(0)
const folders = ['../../../tooling/kernels/ptx', '../../../tooling/kernels/ptx/others', '../../sim/test/ptx']

/** An instruction in a text: its name, and the text before and after it. */
interface Form {
  readonly name: string
  readonly before: string
  readonly operands: string
  readonly after: string
}

const instruction =
  /(?<=^|[;{}\n])([ \t]*(?:@!?%?\w+[ \t]+)?)([a-z]\w*(?:\.[\w:]+)*)([ \t]+[^;:{}]*?(?:\{[^}]*\}[^;{}]*)*);/g

/** Returns the first instruction of each name with its modifiers. */
function findForms(): Form[] {
  const found = new Map<string, Form>()
  for (const folder of folders) {
    const path = fileURLToPath(new URL(folder, import.meta.url))
    for (const file of readdirSync(path).filter((each) => each.endsWith('.ptx') && each !== 'wrong.ptx')) {
      const text = readFileSync(join(path, file), 'utf8')
      for (const { 0: all, 1: lead = '', 2: name = '', 3: operands = '', index } of text.matchAll(instruction)) {
        if (found.has(name)) continue
        found.set(name, {
          name,
          before: text.slice(0, index + lead.length),
          operands,
          after: text.slice(index + all.length - 1),
        })
      }
    }
  }
  return [...found.values()]
}

const forms = findForms()

/** Returns the operands without the last one. */
function fewer(operands: string): string {
  let depth = 0
  for (let at = operands.length - 1; at > 0; at -= 1) {
    const sign = operands[at] as string
    if (')]}'.includes(sign)) depth += 1
    if ('([{'.includes(sign)) depth -= 1
    if (sign === ',' && depth === 0) return operands.slice(0, at)
  }
  return ''
}

/** Returns the error for each changed form; for accepted ones, the name of the form. */
function refusals(change: (form: Form) => string): Map<string, string | undefined> {
  const messageOf = (form: Form): string | undefined => {
    try {
      Module.loadSync(device, `${form.before}${change(form)}${form.after}`).dispose()
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }
  return new Map(forms.map((form) => [form.name, messageOf(form)]))
}

const taken = (refused: Map<string, string | undefined>): string[] =>
  [...refused].filter(([, message]) => message === undefined).map(([name]) => name)

test('the list of PTX forms is long', () => {
  expect(forms.length).toBeGreaterThan(550)
})

test('a modifier that fits no instruction is named in the error', () => {
  const refused = refusals(({ name, operands }) => `${name}.nonsense${operands}`)
  expect([...refused].filter(([, message]) => !message?.includes('.nonsense'))).toEqual([])
})

test('an extra operand is refused unless it is optional', () => {
  const mayBeMore =
    /^(?:bar(?:rier)?\.sync|mbarrier\.(?:arrive|arrive_drop|try_wait)\.|call|(?:min|max)\.(?:ftz\.)?f32$|tex\.)/
  const refused = refusals(({ name, operands }) => `${name}${operands}${operands.trim() === '' ? ' 1' : ', 1'}`)
  expect(taken(refused).filter((name) => !mayBeMore.test(name))).toEqual([])
})

test('a missing operand is refused unless it is optional', () => {
  const mayBeFewer = /^(?:cp\.async\.c[ag]\.|call$|wmma\.(?:load|store)\.|mbarrier\.arrive\.)/
  const refused = refusals(({ name, operands }) => `${name} ${fewer(operands)}`)
  expect(taken(refused).filter((name) => !mayBeFewer.test(name))).toEqual([])
})

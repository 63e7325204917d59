import type { AstNode } from './ast.js'
import { evaluate, type Translation } from './clang.js'
import { type Declarations, plainName, type RecordDeclaration } from './declarations.js'

export interface FieldLayout {
  name: string
  ctype: string
  offset: number
  /** the record of a field whose type is anonymous */
  record?: RecordDeclaration
}

export interface RecordLayout {
  size: number
  alignment: number
  fields: FieldLayout[]
}

interface Placed {
  record: RecordDeclaration
  expression: string
  path: string
}

interface PendingField {
  name: string
  ctype: string
  path: string
  record?: RecordDeclaration
}

/**
 * Sizes, alignments and offsets of records, as the compiler evaluates them. All questions are collected first, so that
 * one compiler run answers them.
 */
export class Layouts {
  readonly #known = new Map<RecordDeclaration, RecordLayout>()

  constructor(unit: Translation, declarations: Declarations, wanted: (record: RecordDeclaration) => boolean) {
    const questions: string[] = []
    const jobs: { record: RecordDeclaration; fields: PendingField[]; base: string; first: number }[] = []
    const queue: Placed[] = declarations.records
      .filter((record) => record.complete && wanted(record))
      .map((record) => ({ record, expression: spelling(declarations, record), path: '' }))
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { record, expression, path } = next
      const fields = collectFields(record)
      const self = path === '' ? expression : `((${expression}*)0)->${path}`
      jobs.push({ record, fields, base: path, first: questions.length })
      questions.push(`sizeof(${self})`, `_Alignof(${path === '' ? expression : `__typeof__(${self})`})`)
      for (const field of fields) {
        const full = path === '' ? field.path : `${path}.${field.path}`
        questions.push(`__builtin_offsetof(${expression}, ${full})`)
        if (field.record) {
          const index = field.ctype.endsWith(']') ? '[0]' : ''
          queue.push({ record: field.record, expression, path: `${full}${index}` })
        }
      }
      if (path !== '') questions.push(`__builtin_offsetof(${expression}, ${path})`)
    }
    const values = evaluate(unit, questions).map(Number)
    for (const { record, fields, base, first } of jobs) {
      const origin = base === '' ? 0 : (values[first + 2 + fields.length] as number)
      this.#known.set(record, {
        size: values[first] as number,
        alignment: values[first + 1] as number,
        fields: fields.map((field, index) => ({
          name: field.name,
          ctype: field.ctype,
          offset: (values[first + 2 + index] as number) - origin,
          ...(field.record ? { record: field.record } : {}),
        })),
      })
    }
  }

  of(record: RecordDeclaration): RecordLayout {
    const layout = this.#known.get(record)
    if (!layout) throw new Error(`no layout for ${plainName(record.names)}`)
    return layout
  }

  get all(): ReadonlyMap<RecordDeclaration, RecordLayout> {
    return this.#known
  }
}

/** The C name of a record: a typedef if there is one, otherwise its tag. */
export function spelling(declarations: Declarations, record: RecordDeclaration): string {
  const typedef = record.names.find((name) => declarations.typedefs.has(name))
  return typedef ?? `${record.union ? 'union' : 'struct'} ${record.names[0]}`
}

function collectFields(record: RecordDeclaration): PendingField[] {
  const fields: PendingField[] = []
  let unnamed: AstNode | undefined
  for (const child of record.node.inner ?? []) {
    if (child.kind === 'RecordDecl' && !child.name) unnamed = child
    if (child.kind !== 'FieldDecl') continue
    if (child.isBitfield) throw new Error(`bit field ${record.names[0]}.${child.name} is not supported`)
    const ctype = (child.type as { qualType: string }).qualType
    const isUnnamed = /\((unnamed|anonymous)|::\(/.test(ctype)
    if (!isUnnamed) {
      fields.push({ name: child.name as string, ctype, path: child.name as string })
      continue
    }
    if (!unnamed) throw new Error(`no declaration for the type of ${record.names[0]}.${child.name}`)
    const nested: RecordDeclaration = {
      names: [],
      union: unnamed.tagUsed === 'union',
      node: unnamed,
      complete: true,
      nested: true,
    }
    // Members of an anonymous member belong to the outer record.
    if (!child.name) fields.push(...collectFields(nested))
    else {
      nested.names.push(`${plainName(record.names)}_${child.name}`)
      const suffix = /(\[\d*\])+$/.exec(ctype)?.[0] ?? ''
      fields.push({
        name: child.name,
        ctype: `${nested.union ? 'union' : 'struct'}${suffix}`,
        path: child.name,
        record: nested,
      })
    }
  }
  return fields
}

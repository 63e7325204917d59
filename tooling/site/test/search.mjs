// The search as the browser runs it: VitePress's index, its own settings, ours on top.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { searchSettings } from '../search.mjs'

/** Answers questions with what is found, best first: `{ id, title, titles }`. */
export async function searchOf(site) {
  // A dependency of the site, which is not installed for other tests.
  const { default: MiniSearch } = await import('minisearch')
  const folder = join(site, 'assets/chunks')
  const [file] = readdirSync(folder).filter((name) => name.startsWith('@localSearchIndex'))
  const { default: text } = await import(pathToFileURL(join(folder, file)).href)
  const { options, searchOptions } = searchSettings(() => undefined)
  const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] }
  const index = MiniSearch.loadJSON(text, { ...fields, searchOptions, ...options })
  return (question) => index.search(question)
}

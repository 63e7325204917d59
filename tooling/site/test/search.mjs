// Runs the search as a browser does: VitePress's index and settings, then our settings.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { searchSettings } from '../search.mjs'

/** Returns a function that answers a question with the results, best first: `{ id, title, titles }`. */
export async function searchOf(site) {
  // This dependency of the site is not installed for other tests.
  const { default: MiniSearch } = await import('minisearch')
  const folder = join(site, 'assets/chunks')
  const [file] = readdirSync(folder).filter((name) => name.startsWith('@localSearchIndex'))
  const { default: text } = await import(pathToFileURL(join(folder, file)).href)
  const { options, searchOptions } = searchSettings(() => undefined)
  const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] }
  const index = MiniSearch.loadJSON(text, { ...fields, searchOptions, ...options })
  return (question) => index.search(question)
}

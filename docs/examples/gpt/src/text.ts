import { readdirSync, readFileSync } from 'node:fs'
import { generator } from './model.js'

/** The guides of this repository, the default training text. */
export function defaultFiles(): readonly URL[] {
  const guides = new URL('../../../guides/', import.meta.url)
  const names = readdirSync(guides).filter((name) => name.endsWith('.md'))
  return names.sort().map((name) => new URL(name, guides))
}

export function readText(files: readonly (string | URL)[]): string {
  return files.map((file) => readFileSync(file, 'utf8')).join('\n')
}

/** The characters of a text, in their order: a character is known to the model by its index. */
export function charactersOf(text: string): readonly string[] {
  return [...new Set(text)].sort()
}

/** @throws RangeError for a character that is not among them */
export function encode(text: string, characters: readonly string[]): Int32Array {
  const indices = new Map(characters.map((character, index) => [character, index]))
  return Int32Array.from([...text], (character) => {
    const index = indices.get(character)
    if (index === undefined) throw new RangeError(`the model does not know the character ${JSON.stringify(character)}`)
    return index
  })
}

/** Text that follows another one, character by character, as the model's logits have it; the same for the same seed. */
export async function* sample(
  prompt: string,
  count: number,
  { characters, seed, temperature }: { characters: readonly string[]; seed: number; temperature: number },
  logitsAfter: (tokens: readonly number[]) => Promise<Float32Array>,
): AsyncGenerator<string> {
  const next = generator(seed)
  const tokens = [...encode(prompt, characters)]
  for (let index = 0; index < count; index += 1) {
    const logits = await logitsAfter(tokens)
    const most = Math.max(...logits)
    const weights = Array.from(logits, (logit) => Math.exp((logit - most) / temperature))
    let left = next() * weights.reduce((sum, weight) => sum + weight, 0)
    const chosen = weights.findIndex((weight) => (left -= weight) < 0)
    const token = chosen < 0 ? weights.length - 1 : chosen
    tokens.push(token)
    yield characters[token] as string
  }
}

/** A page of the site. */
export interface Page {
  /** Below the site's root, such as `guides/memory.html`. */
  readonly url: string
  readonly title: string
  /** The part of the site that it is in: a heading of the navigation. */
  readonly section: string
  readonly html: string
  /** What is listed below its name in the navigation. */
  readonly outline: readonly { readonly url: string; readonly text: string }[]
  /** The pages before and after it, where it is one of several that are read in order. */
  readonly previous?: Page | undefined
  readonly next?: Page | undefined
}

/** What the search finds. */
export interface Found {
  readonly url: string
  readonly title: string
  /** What kind of thing it is, in a word or two. */
  readonly kind: string
  readonly text: string
  /** What the list of guides says of it. */
  readonly about?: string
  /** How much it counts: guides before the reference, the reference before raw functions. */
  readonly weight: number
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** The id of a heading, as GitHub makes it. */
export function slug(text: string): string {
  const words = text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '')
  return words.replaceAll(' ', '-')
}

/** `url` as a page at `from` has to write it. */
export function relativeUrl(from: string, url: string): string {
  return /^(?:[a-z]+:|#)/.test(url) ? url : `${'../'.repeat(from.split('/').length - 1)}${url}`
}

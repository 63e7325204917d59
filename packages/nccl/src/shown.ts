/** A value as text, for the message of an error; also what JavaScript cannot make text of. */
export function shown(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'an object that has no text'
  }
}

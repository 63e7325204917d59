/** Objects that end together, whatever happens in between; the last one first. */
export class Owned implements Disposable {
  readonly #objects: Disposable[] = []

  keep<T extends Disposable>(object: T): T {
    this.#objects.push(object)
    return object
  }

  [Symbol.dispose](): void {
    for (const object of this.#objects.splice(0).reverse()) object[Symbol.dispose]()
  }
}

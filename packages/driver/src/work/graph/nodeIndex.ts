import type { CUgraphNode } from '@shoal/cuda-sys/driver'

interface Indexed<N> {
  readonly _handle: CUgraphNode
  /** Returns the node added before this one, once. */
  _takePrevious(): N | undefined
}

/** Nodes by handle. Added nodes are indexed at the first search, because most programs keep the nodes themselves. */
export class NodeIndex<N extends Indexed<N>> {
  readonly #nodes = new Map<CUgraphNode, N>()
  /** The last node added since the last search. Each node knows the one before it. */
  lastAdded: N | undefined

  add(node: N): N {
    this.lastAdded = node
    return node
  }

  find(handle: CUgraphNode, make: () => N): N {
    this.#indexAdded()
    let node = this.#nodes.get(handle)
    if (node === undefined) {
      node = make()
      this.#nodes.set(handle, node)
    }
    return node
  }

  delete(node: N): void {
    this.#indexAdded()
    this.#nodes.delete(node._handle)
  }

  #indexAdded(): void {
    for (let node = this.lastAdded; node !== undefined; node = node._takePrevious()) this.#nodes.set(node._handle, node)
    this.lastAdded = undefined
  }
}

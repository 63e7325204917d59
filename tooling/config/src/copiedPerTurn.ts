/**
 * Returns the most bytes that `set` of typed arrays copied in one turn of the event loop during `work`. This shows how
 * long copies block the loop, without a clock.
 */
export async function copiedPerTurn(work: () => Promise<unknown>): Promise<number> {
  const prototype = Object.getPrototypeOf(Uint8Array.prototype) as {
    set: (source: ArrayLike<number>, at?: number) => void
  }
  const { set } = prototype
  let [inTurn, most, isOver] = [0, 0, false]
  prototype.set = function (source, at) {
    inTurn += ArrayBuffer.isView(source) ? source.byteLength : source.length
    most = Math.max(most, inTurn)
    set.call(this, source, at)
  }
  const endOfTurn = (): void => {
    inTurn = 0
    if (!isOver) setImmediate(endOfTurn)
  }
  endOfTurn()
  try {
    await work()
  } finally {
    isOver = true
    prototype.set = set
  }
  if (most === 0) throw new Error('nothing was copied by set(), which is all that is counted here')
  return most
}

/** A `Uint8Array` over an `ArrayBuffer` of its own, where TypeScript can tell (from 5.7 on). */
export type OwnBytes = ReturnType<Uint8Array['slice']>

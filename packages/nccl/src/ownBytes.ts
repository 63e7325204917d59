/** A `Uint8Array` with its own `ArrayBuffer`, if TypeScript distinguishes that (from 5.7 on). */
export type OwnBytes = ReturnType<Uint8Array['slice']>

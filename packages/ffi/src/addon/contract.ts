import type { OwnedArrayOf } from '@shoal/types'

/** What the native addon exports. The only description of that boundary on the JavaScript side. */
export interface Addon {
  initialize(block: ArrayBuffer, handlers: AddonHandlers): void

  /** One more, or one less, reason to keep the event loop alive. */
  hold(): void
  unhold(): void

  bind(address: bigint, slots: number, floats: number, result: number, resultBytes: number, name: string): () => number
  /** Writes the address of the first byte to a slot. */
  putAddress(view: ArrayBufferView | ArrayBufferLike, slot: number): void

  setContextFunctions(getCurrent: bigint, setCurrent: bigint): void
  /**
   * Reads and writes the context slot of the block. 1: changed, 0: was current already, negative: minus the library's
   * code.
   */
  enterContext(): number
  /** Makes the context in the context slot current and empties the slot. Returns the library's code. */
  leaveContext(): number

  allocate(byteLength: number): { readonly buffer: ArrayBuffer; readonly address: bigint }
  release(address: bigint): void
  /** The callback is called when no ArrayBuffer reaches the memory any more. */
  view(address: bigint, byteLength: number, callback: number): ArrayBuffer
  detach(buffer: ArrayBuffer): void
  addressOf(view: ArrayBufferView | ArrayBufferLike): bigint
  readCString(address: bigint): string | null
  copyOut(address: bigint, target: Uint8Array): void

  open(name: string, onlyIfLoaded: boolean): { readonly handle: bigint; readonly path: string } | string
  symbol(handle: bigint, name: string): bigint

  startRecording(): void
  dropRecording(): void
  pauseRecording(paused: boolean): void
  takeRecording(): NativeRecording
  /** Has the recorded calls made when the thread ends, however it does. */
  keepRecording(): number
  forgetRecording(number: number): void
  /** Makes all calls; the first status that is neither 0 nor `ignored`. */
  replay(recording: NativeRecording, ignored: number): number
  keep(address: bigint): void
  run(id: number, context: bigint, stopOnError: boolean, wantsValues: boolean, lane: NativeLane | null): boolean
  /** The call recorded last is made again with each of the first words as its first argument. */
  repeat(words: BigUint64Array, count: number): void
  /**
   * Makes all recorded calls on a lane. The handler has no results when all are 0. It is called by
   * {@link deliverQuiet}, or once the event loop is woken: when the calls have returned, if `isPrompt`, or when the
   * lane has nothing more to do.
   */
  runQuietly(id: number, context: bigint, lane: NativeLane, isPrompt: boolean): boolean
  deliverQuiet(): void
  /**
   * Whether this thread may look for the end of a call while another makes it: on few processors it would take its
   * place.
   */
  readonly hasSpareProcessors: boolean
  /** Tells the handlers of what has ended by now, or ends within so many nanoseconds. */
  deliver(nanoseconds: number): void
  /** Whether the event loop asks by itself, with {@link deliver}: nothing wakes it meanwhile. */
  setAsking(isAsking: boolean): void
  /**
   * Memory outside of the JavaScript heap that objects hold has grown by so many bytes. Returns how much there is of
   * it.
   */
  adjustExternalMemory(bytes: number): number
  /** {@link takeCollected} gives the number when the collector has taken the object. */
  watchObject(id: number, object: object): void
  forgetObject(id: number): void
  takeCollected(): number[]
  createLane(): NativeLane
  closeLane(lane: NativeLane): void
  /** Blocks until everything queued has run; false when the time is over first. */
  waitForLane(lane: NativeLane, milliseconds: number): boolean

  wait(id: number, context: bigint, query: bigint, argument: bigint, notReady: number): boolean
  /**
   * 0: its end is reported already. 1: it is neither asked nor reported any more. 2: it is reported once its query
   * returns.
   */
  forgetWait(id: number): 0 | 1 | 2

  /** A tensor of DLPack, versioned where there are flags; the callback is called when its deleter was. */
  createTensor(
    data: bigint,
    deviceType: number,
    deviceId: number,
    type: number,
    shapeAndStrides: BigInt64Array,
    callback: number,
    flags: bigint | null,
  ): bigint
  deleteTensor(address: bigint, isVersioned: boolean): void
  /** What an External of another addon points to; undefined for anything else. */
  externalAddress(value: unknown): bigint | undefined

  registerCallback(): number
  unregisterCallback(id: number): void
  /** Unix sockets; absent on Windows. Each returns minus errno when it fails. */
  readonly socketPair?: () => readonly [number, number] | number
  openSocket(path: string, listen: boolean): number
  acceptSocket(descriptor: number): number
  adoptSocket(descriptor: number): number
  /** The user at the other end. */
  peerUser(descriptor: number): number
  isHungUp(descriptor: number): boolean
  sendSocket(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number
  receiveSocket(descriptor: number, bytes: Uint8Array, descriptors: number[]): number
  closeDescriptor(descriptor: number): number
  closeAtEnd?(descriptor: number, isWanted: boolean): void
  /** 1: a file, 2: a folder, 3: a socket, 4: a pipe, 0: anything else. */
  descriptorKind(descriptor: number): number
  duplicateDescriptor(descriptor: number): number
  readonly readyToReadAddress: bigint
  readonly readyToWriteAddress: bigint

  /**
   * Leaves a text for another thread of this process under a key. It goes when it is taken or dropped, or when this
   * thread ends.
   */
  putOffer(key: string, text: string): void
  /** The text under a key, once. */
  takeOffer(key: string): string | undefined
  dropOffer(key: string): void

  /** Whether memory of an array can be read although another thread may let go of it. */
  readonly canReadArrays: boolean
  readonly copyPartAddress: bigint
  startHostCopy(
    block: bigint,
    memory: bigint,
    byteLength: number,
    part: number,
    isUpload: boolean,
    threads: number,
  ): NativeHostCopy
  hostCopyData(copy: NativeHostCopy): bigint
  /** The stream calls the host function no more. */
  endHostCopy(copy: NativeHostCopy): void

  /** Gives the handlers of SIGINT and SIGTERM their flags back that a library took. */
  restoreSignals(): void
  /** Whether an exit() that Node did not ask for ends the process at once, with its status. */
  guardExit(guarded: boolean): void

  readonly hostFunctionAddress: bigint
  readonly streamCallbackAddress: bigint
}

/** What a recorded call returned, in the type that the call itself would have returned. */
export type CallResult = number | bigint | boolean | OwnedArrayOf<'u8'> | undefined

/** Recorded calls. */
export type NativeRecording = object & { readonly __brand: 'NativeRecording' }

/** A copy that a stream makes part by part. */
export type NativeHostCopy = object & { readonly __brand: 'NativeHostCopy' }

/** An opaque handle of a native thread of one's own. */
export type NativeLane = object & { readonly __brand: 'NativeLane' }

export interface AddonHandlers {
  /** `isForgotten`: nobody wants to know the status any more, but the query has returned. */
  wait(id: number, status: number, isForgotten: boolean): void
  callback(id: number, status: number): void
  job(id: number, contextStatus: number, results?: CallResult[]): void
}

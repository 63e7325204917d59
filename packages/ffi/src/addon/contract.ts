import type { OwnedArrayOf } from '@shoal/types'

/** Exports of the native addon. This is the only JavaScript description of that boundary. */
export interface Addon {
  initialize(block: ArrayBuffer, handlers: AddonHandlers): void

  /** Adds or removes a reason to keep the event loop alive. */
  hold(): void
  unhold(): void

  bind(address: bigint, slots: number, floats: number, result: number, resultBytes: number, name: string): () => number
  /** Writes the address of the first byte to a slot. */
  putAddress(view: ArrayBufferView | ArrayBufferLike, slot: number): void

  setContextFunctions(getCurrent: bigint, setCurrent: bigint): void
  /**
   * Reads and writes the context slot of the block. Returns 1 if the context changed, 0 if not, or minus an error code.
   */
  enterContext(): number
  /** Makes the context in the context slot current and clears the slot. Returns the library's status. */
  leaveContext(): number

  allocate(byteLength: number): { readonly buffer: ArrayBuffer; readonly address: bigint }
  release(address: bigint): void
  /** Calls the callback when no ArrayBuffer reaches the memory any more. */
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
  /** Makes the recorded calls when the thread ends for any reason. */
  keepRecording(): number
  forgetRecording(number: number): void
  /** Makes all calls. Returns the first status that is neither 0 nor `ignored`. */
  replay(recording: NativeRecording, ignored: number): number
  keep(address: bigint): void
  run(id: number, context: bigint, stopOnError: boolean, wantsValues: boolean, lane: NativeLane | null): boolean
  /** Repeats the last recorded call once per word, with the word as its first argument. */
  repeat(words: BigUint64Array, count: number): void
  /**
   * Makes all recorded calls on a lane. The handler gets no results if all are 0.
   *
   * The handler runs in {@link deliverQuiet}, or in a later event loop turn: after these calls return if `isPrompt`,
   * else when the lane is idle.
   */
  runQuietly(id: number, context: bigint, lane: NativeLane, isPrompt: boolean): boolean
  deliverQuiet(): void
  /**
   * Whether this thread may poll for completion while another thread makes the call.
   *
   * With few cores, polling takes a core from the call itself.
   */
  readonly hasSpareProcessors: boolean
  /** Calls the handlers of all work that has completed, or completes within `nanoseconds`. */
  deliver(nanoseconds: number): void
  /** Whether the event loop polls with {@link deliver}; native threads do not wake it then. */
  setAsking(isAsking: boolean): void
  /** Reports a change of memory outside the JavaScript heap, in bytes. Returns the total. */
  adjustExternalMemory(bytes: number): number
  /** Watches an object; {@link takeCollected} returns its number after the object was collected. */
  watchObject(id: number, object: object): void
  forgetObject(id: number): void
  takeCollected(): number[]
  createLane(): NativeLane
  closeLane(lane: NativeLane): void
  /** Blocks until all queued work has run. Returns false on a timeout. */
  waitForLane(lane: NativeLane, milliseconds: number): boolean

  wait(id: number, context: bigint, query: bigint, argument: bigint, notReady: number): boolean
  /**
   * 0: completion was already reported. 1: the query stops and nothing is reported. 2: reported when the query returns.
   */
  forgetWait(id: number): 0 | 1 | 2

  /** Makes a DLPack tensor, versioned if `flags` are given. The callback runs after its deleter was called. */
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
  /** Returns the pointer of an External of another addon; undefined for any other value. */
  externalAddress(value: unknown): bigint | undefined

  registerCallback(): number
  unregisterCallback(id: number): void
  /** Unix sockets; absent on Windows. Functions return minus errno on failure. */
  readonly socketPair?: () => readonly [number, number] | number
  openSocket(path: string, listen: boolean): number
  acceptSocket(descriptor: number): number
  adoptSocket(descriptor: number): number
  /** Returns the user id of the peer. */
  peerUser(descriptor: number): number
  isHungUp(descriptor: number): boolean
  sendSocket(descriptor: number, bytes: Uint8Array, descriptors: readonly number[]): number
  receiveSocket(descriptor: number, bytes: Uint8Array, descriptors: number[]): number
  closeDescriptor(descriptor: number): number
  closeAtEnd?(descriptor: number, isWanted: boolean): void
  /** 1: file, 2: folder, 3: socket, 4: pipe, 0: other. */
  descriptorKind(descriptor: number): number
  duplicateDescriptor(descriptor: number): number
  readonly readyToReadAddress: bigint
  readonly readyToWriteAddress: bigint

  /** Stores a text under a key for another thread. It is removed when taken, dropped, or when this thread ends. */
  putOffer(key: string, text: string): void
  /** Takes the text under a key, once. */
  takeOffer(key: string): string | undefined
  dropOffer(key: string): void

  /** Whether array memory can be read safely while another thread may free it. */
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
  /** Ends the copy. The stream must not call the host function any more. */
  endHostCopy(copy: NativeHostCopy): void

  /** Restores the flags of the SIGINT and SIGTERM handlers after a library changed them. */
  restoreSignals(): void
  /** Whether an exit() from outside Node ends the process immediately, with its status. */
  guardExit(guarded: boolean): void

  readonly hostFunctionAddress: bigint
  readonly streamCallbackAddress: bigint
}

/** Result of a recorded call, in the type that the call returns when made directly. */
export type CallResult = number | bigint | boolean | OwnedArrayOf<'u8'> | undefined

/** Recorded calls. */
export type NativeRecording = object & { readonly __brand: 'NativeRecording' }

/** A copy that a stream makes in parts. */
export type NativeHostCopy = object & { readonly __brand: 'NativeHostCopy' }

/** Opaque handle of a dedicated native thread. */
export type NativeLane = object & { readonly __brand: 'NativeLane' }

export interface AddonHandlers {
  /** `isForgotten`: the wait was cancelled, and its query has now returned. */
  wait(id: number, status: number, isForgotten: boolean): void
  callback(id: number, status: number): void
  job(id: number, contextStatus: number, results?: CallResult[]): void
}

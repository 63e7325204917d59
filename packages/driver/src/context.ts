import { Context as BaseContext, contextOf as baseContextOf } from '@shoal/cuda-base'
import type { Device } from './device.js'

/**
 * The primary context of a device: what libcudart, NCCL and NVSHMEM use too. It is retained once for each JavaScript
 * thread and released when its device was disposed of and nothing that lives in it is left.
 */
export type Context = BaseContext<Device>
export const Context = BaseContext

/** What can be named where memory or a module is made: a device means its primary context. */
export type ContextSource = Context | Device

/** The context of a device or the context itself; a TypeError for anything else. */
export function contextOf(source: ContextSource): Context {
  return baseContextOf(source) as Context
}

export { type CloseReason, type ContextLimit, closeContextsOfThread, requireContext } from '@shoal/cuda-base'

import type fc from 'fast-check'
import { reserveGrowable, resize, writeGrowable } from './growableCommands.js'
import {
  create,
  createOdd,
  dispose,
  exportHandle,
  getAccess,
  importHandle,
  map,
  read,
  reserve,
  retain,
  setAccess,
  write,
} from './memoryCommands.js'
import { addDevice, bind, createMulticast, unbind } from './multicastCommands.js'
import type { World } from './world.js'

/** All commands. Commands that create and use objects are more frequent than those that end them. */
export const commands: fc.Arbitrary<fc.AsyncCommand<object, World>>[] = [
  reserve,
  reserve,
  create,
  create,
  createOdd,
  map,
  map,
  map,
  setAccess,
  getAccess,
  write,
  write,
  read,
  read,
  exportHandle,
  importHandle,
  retain,
  createMulticast,
  addDevice,
  addDevice,
  bind,
  bind,
  unbind,
  reserveGrowable,
  resize,
  writeGrowable,
  dispose,
  dispose,
]

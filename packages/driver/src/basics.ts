/**
 * Functions that all safe packages share, including packages without contexts and memory of their own. This entry is
 * small so that it loads quickly.
 */
export { type GraphUse, isCapturing, isInCapture, useInCaptured } from './core/context/capturing.js'
export { keepCaptured } from './core/context/keptByCaptures.js'
export { type PrimaryContext, releasePrimaryContexts, retainPrimaryContexts } from './core/context/primaryContexts.js'
export { check as checkCuda } from './core/errors.js'
export { keepRegistered, keepWhile, untilMemoryUnused, whenMemoryUnused } from './core/inUse.js'
export { forgetLeak, warnOnReject, watchForLeak } from './core/lifetime.js'
export { byteLengthOf, bytesOf } from './core/ranges/arrayBytes.js'
export { boundStreamOf, missingStreams } from './core/stream/boundStream.js'
export { eventBehind, orderBehind } from './core/stream/orderBehind.js'
export { copyInSlices } from './memory/buffers/copyInSlices.js'
export { elementBytes, structBytes } from './memory/buffers/elements.js'
export { bytesOfElement, nameOfType, requireElementType } from './memory/buffers/elementType.js'
export { requireGranted } from './memory/buffers/reach.js'

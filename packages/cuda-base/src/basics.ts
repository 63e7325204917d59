/** What all safe packages share, also those that have no contexts and memory of their own. Little of it, and quick to load. */
export { type PrimaryContext, releasePrimaryContexts, retainPrimaryContexts } from './context/primaryContexts.js'
export { check as checkCuda } from './errors.js'
export { keepWhile, untilMemoryUnused, whenMemoryUnused } from './inUse.js'
export { forgetLeak, warnOnReject, watchForLeak } from './lifetime.js'
export { byteLengthOf, bytesOf } from './memory/arrayBytes.js'
export { copyInSlices } from './memory/copyInSlices.js'
export { eventBehind, orderBehind } from './stream/orderBehind.js'

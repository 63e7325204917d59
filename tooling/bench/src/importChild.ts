// Started by importCost.ts, once for each sample: imports what it is told and says what that cost.
import { readFileSync } from 'node:fs'

const name = process.argv[2]
const before = performance.now()
if (name !== undefined) await import(name)
const milliseconds = performance.now() - before
const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : ''
const libraries = [...new Set(maps.match(/\/\S*(?:libcuda|libcudart|libnccl|libnvshmem|libnvidia)\S*/g) ?? [])]
console.log(JSON.stringify({ milliseconds, residentBytes: process.memoryUsage.rss(), libraries }))

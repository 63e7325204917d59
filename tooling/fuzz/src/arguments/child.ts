import { readFileSync } from 'node:fs'
import { askPackage } from './ask.js'
import type { Callable } from './contract.js'

const [packageName = '', file = ''] = process.argv.slice(2)
await askPackage(packageName, JSON.parse(readFileSync(file, 'utf8')) as Callable[])
process.exit(0)

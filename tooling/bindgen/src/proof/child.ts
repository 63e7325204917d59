// Runs one job in a process of its own: `node child.js JOB.json REPORT.json`.

import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openSession, runBlock, runRecording } from './engines.js'
import type { Job } from './job.js'
import { runKoffi } from './koffi.js'
import { ffiFile, loadFfi, loadSysPackage, sysPackages } from './packages.js'
import { runRefusals } from './refusals.js'
import { runVersions } from './versions.js'

const [jobFile = '', reportFile = ''] = process.argv.slice(2)
const job = JSON.parse(readFileSync(jobFile, 'utf8')) as Job
const location = job.location ?? sysPackages[job.spec.library]
if (location === undefined) throw new Error(`no package is known for ${job.spec.library}`)
const ffi = await loadFfi(join(job.root, ffiFile))
const sys = await loadSysPackage(resolve(job.root, location.file), job.spec.library)
const session = openSession(job, ffi, sys)
if (job.engine === 'block') runBlock(session)
else if (job.engine === 'recording') await runRecording(session)
else if (job.engine === 'koffi') runKoffi(session)
else if (job.engine === 'refusals') runRefusals(session)
else runVersions(session)
writeFileSync(reportFile, JSON.stringify(session.report))

// Runs one job in a separate process: `node child.js JOB.json REPORT.json`.

import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openSession, runBlock, runRecording } from './engines.js'
import type { Job } from './job.js'
import { runKoffi } from './koffi.js'
import { builtFile, ffiFile, loadFfi, loadSysPackage, sysPackages } from './packages.js'
import { runRefusals } from './refusals.js'
import { runVersions } from './versions.js'

const [jobFile = '', reportFile = ''] = process.argv.slice(2)
const job = JSON.parse(readFileSync(jobFile, 'utf8')) as Job
const file = job.location?.file ?? builtFile(sysPackages[job.spec.library].specifier)
const ffi = await loadFfi(join(job.root, ffiFile))
const sys = await loadSysPackage(resolve(job.root, file), job.spec.library)
const session = openSession(job, ffi, sys)
if (job.engine === 'block' || job.engine === 'koffi block') runBlock(session)
else if (job.engine === 'recording') await runRecording(session)
else if (job.engine === 'koffi') runKoffi(session)
else if (job.engine === 'refusals') runRefusals(session)
else runVersions(session)
writeFileSync(reportFile, JSON.stringify(session.report))

/** Folders to search for libraries, in order. Never a `stubs` folder or the working directory. */
import { readdirSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'

/** Returns the names in a folder; empty if the folder is missing. */
export function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // missing or unreadable folder: contains nothing to find
  }
}

function unique(folders: readonly string[]): string[] {
  return [...new Set(folders)]
}

/** Returns the toolkits that environment variables name. */
export function toolkitsOfEnvironment(environment: NodeJS.ProcessEnv = process.env): string[] {
  const named = [environment['CUDA_HOME'], environment['CUDA_PATH'], environment['CUDA_ROOT']]
  return unique(named.filter((folder): folder is string => folder !== undefined && isAbsolute(folder)))
}

/** Returns toolkits in their usual folders, the newest version first. */
export function installedToolkits(): string[] {
  if (process.platform === 'win32') {
    const root = join(process.env['ProgramFiles'] ?? 'C:\\Program Files', 'NVIDIA GPU Computing Toolkit', 'CUDA')
    return versionsOf(list(root), /^v(\d+)\.(\d+)$/).map((name) => join(root, name))
  }
  const versions = versionsOf(list('/usr/local'), /^cuda-(\d+)(?:\.(\d+))?$/).map((name) => join('/usr/local', name))
  return ['/usr/local/cuda', ...versions, '/opt/cuda']
}

/** Returns a toolkit's library folders per processor type, relative to its root. */
export function targetFolders(toolkit: string): string[] {
  return list(join(toolkit, 'targets'))
    .sort()
    .map((target) => join('targets', target, 'lib'))
}

/** Returns the library folders of the active conda environment. */
export function condaFolders(environment: NodeJS.ProcessEnv = process.env): string[] {
  const prefix = environment['CONDA_PREFIX']
  if (prefix === undefined || !isAbsolute(prefix)) return []
  if (process.platform === 'win32') return [join(prefix, 'Library', 'bin')]
  return ['lib', ...targetFolders(prefix)].map((folder) => join(prefix, folder))
}

function versionsOf(names: readonly string[], pattern: RegExp): string[] {
  const order = (name: string): number => {
    const match = pattern.exec(name)
    return Number(match?.[1] ?? 0) * 1000 + Number(match?.[2] ?? 0)
  }
  return names.filter((name) => pattern.test(name)).sort((a, b) => order(b) - order(a))
}

/** Returns `site-packages` folders: of the active Python, those on PATH, the system's and the user's. */
export function sitePackages(environment: NodeJS.ProcessEnv = process.env): string[] {
  if (process.platform === 'win32') {
    const prefixes = [environment['VIRTUAL_ENV'], environment['CONDA_PREFIX']]
    return prefixes
      .filter((prefix) => prefix !== undefined && isAbsolute(prefix))
      .map((prefix) => join(prefix as string, 'Lib', 'site-packages'))
  }
  const onPath = (environment['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && folder.endsWith('bin'))
    .map(dirname)
  const prefixes = [
    environment['VIRTUAL_ENV'],
    environment['CONDA_PREFIX'],
    ...onPath,
    '/usr',
    '/usr/local',
    join(process.getBuiltinModule('node:os').homedir(), '.local'),
  ]
  const found: string[] = []
  for (const prefix of unique(
    prefixes.filter((folder): folder is string => folder !== undefined && isAbsolute(folder)),
  )) {
    for (const name of versionsOf(list(join(prefix, 'lib')), /^python(\d+)\.(\d+)$/)) {
      for (const kind of ['site-packages', 'dist-packages']) found.push(join(prefix, 'lib', name, kind))
    }
    found.push(join(prefix, 'lib', 'python3', 'dist-packages'))
  }
  return found
}

import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import type { GatewayConfig } from './model/gateway.ts'

/** The folder with the files of a rule (`respond: { files: … }`) that a file is in, if any. */
export function publishedFolderOf(file: string, { upstreams }: Pick<GatewayConfig, 'upstreams'>): string | undefined {
  const folders = upstreams.flatMap(({ rules }) =>
    rules.flatMap(({ respond }) => (respond?.kind === 'files' ? [respond.folder] : [])),
  )
  return folders.find((folder) => isInFolder(file, folder))
}

/** Whether a file is in a folder, by its path or by links. It need not exist yet. */
export function isInFolder(file: string, folder: string): boolean {
  return [resolve(file), real(file)].some((path) =>
    [resolve(folder), real(folder)].some((above) => {
      const way = relative(above, path)
      return !isAbsolute(way) && way !== '..' && !way.startsWith('../')
    }),
  )
}

/** The path without links. A part that does not exist yet stays. */
function real(path: string): string {
  const absolute = resolve(path)
  try {
    return realpathSync(absolute)
  } catch {
    const above = dirname(absolute)
    return above === absolute ? absolute : join(real(above), basename(absolute))
  }
}

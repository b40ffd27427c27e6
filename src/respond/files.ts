import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import send from '@fastify/send'
import type { FilesConfig } from '../config/model/respond.ts'
import { acceptedCodings } from '../http/accepted-codings.ts'
import type { ClientMessage } from '../http/client-messages.ts'
import type { CanonicalTarget } from '../http/request-target.ts'
import type { Incoming, Response } from '../http/response.ts'
import { sendContent } from './send-content.ts'

/** The endings of the names of compressed files, in the order in which the gateway prefers them. */
const endings = { br: '.br', zstd: '.zst', gzip: '.gz' } as const
const codings = Object.keys(endings) as (keyof typeof endings)[]

/** An open file of a folder, or a folder in it. */
interface Found {
  readonly handle: FileHandle
  readonly isFolder: boolean
}

/**
 * The response with a file of a folder; `undefined` if there is none.
 * @param above how many segments of the path are above the folder
 */
export async function fileResponse(
  { folder }: FilesConfig,
  above: number,
  { req, facts, record }: Incoming,
  idleTimeoutMs: number,
): Promise<Response | undefined> {
  const { target } = facts
  const names = namesIn(target, above)
  if (names === undefined) return undefined
  const isFolderPath = names.at(-1) === ''
  const path = join(folder, ...names, isFolderPath ? 'index.html' : '')
  const found = await openWithin(folder, path)
  if (found === undefined) return undefined
  if (found.isFolder || names.length === 0) {
    await found.handle.close()
    // Links in the index of a folder are relative to a path with a slash at its end.
    return isFolderPath ? undefined : { status: 301, headers: { Location: `${target.path}/${target.query}` }, body: '' }
  }
  const { handle, coding } = await inAcceptedCoding(folder, path, found.handle, req.headers['accept-encoding'])
  const { statusCode: status, headers, stream, type } = await sendOf(handle, req)
  const all: Response['headers'] = {
    ...headers,
    ...(status < 300 && { 'Content-Type': typeOf(path), ...(coding !== undefined && { 'Content-Encoding': coding }) }),
    Vary: 'Accept-Encoding',
  }
  if (type !== 'file' || status === 304) {
    stream.destroy()
    await handle.close()
    const { 'Content-Range': range } = headers
    return {
      status,
      headers: type === 'file' ? all : { ...(range !== undefined && { 'Content-Range': range }) },
      body: '',
    }
  }
  stream.once('close', () => void handle.close())
  const length = facts.method === 'HEAD' ? 0 : Number(headers['Content-Length'])
  return {
    status,
    headers: all,
    body: '',
    stream: (res) => sendContent(stream, length, res, { record, idleTimeoutMs }),
  }
}

/**
 * The names below the folder; `undefined` for a name that no file has, or that could lead
 * elsewhere. The last one is empty for a path with a slash at its end.
 */
function namesIn({ segments }: CanonicalTarget, above: number): readonly string[] | undefined {
  try {
    const names = segments.slice(above).map(decodeURIComponent)
    return names.some((name) => name.startsWith('.') || /[/\\\0]/.test(name)) ? undefined : names
  } catch {
    // It is not UTF-8.
    return undefined
  }
}

/**
 * Opens what is at a path in a folder; `undefined` if nothing is there that may be served. Opening
 * never waits, not even for a pipe. The file that was opened is the one that is checked, because
 * somebody who may write to the folder can replace a link at any time.
 */
async function openWithin(folder: string, path: string): Promise<Found | undefined> {
  const root = await realpath(folder).catch(absent)
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY).catch(absent)
  if (handle === undefined) return undefined
  try {
    const found = await handle.stat()
    const real = await realpath(isLinux ? descriptorPath(handle) : path)
    const isWithin = root !== undefined && (real === root || real.startsWith(root === sep ? sep : root + sep))
    if (isWithin && (found.isFile() || found.isDirectory())) return { handle, isFolder: found.isDirectory() }
  } catch (error) {
    await handle.close()
    return absent(error)
  }
  await handle.close()
  return undefined
}

const isLinux = process.platform === 'linux'
const descriptors = isLinux ? '/proc/self/fd' : '/dev/fd'

function descriptorPath({ fd }: FileHandle): string {
  return join(descriptors, String(fd))
}

const absentCodes: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EACCES', 'ENXIO'])

/** @throws {unknown} the error, if it does not mean that there is no such file */
function absent(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && absentCodes.has(error.code)) return undefined
  throw error
}

/** The file itself, or the compressed file beside it that the client wants most. */
async function inAcceptedCoding(
  folder: string,
  path: string,
  handle: FileHandle,
  accepted: ClientMessage['headers']['accept-encoding'],
): Promise<{ readonly handle: FileHandle; readonly coding?: string }> {
  for (const coding of acceptedCodings(accepted, codings)) {
    const found = await openWithin(folder, path + endings[coding])
    if (found?.isFolder === false) {
      await handle.close()
      return { handle: found.handle, coding }
    }
    await found?.handle.close()
  }
  return { handle }
}

/**
 * What the package makes of the open file: conditions, ranges and validators (RFC 9110 §13, §14).
 */
function sendOf(handle: FileHandle, { method, headers }: ClientMessage): ReturnType<typeof send> {
  const { range, ...others } = headers
  // The tags are weak, and If-Range needs a strong one (RFC 9110 §13.1.5). The package compares
  // them.
  const isRange = range !== undefined && !String(headers['if-range'] ?? '').startsWith('W/')
  // The package reads nothing else of a request.
  const request = { method, headers: isRange ? { ...others, range } : others } as unknown as Readable
  const options = {
    root: descriptors,
    dotfiles: 'allow',
    index: false,
    cacheControl: false,
    contentType: false,
  } as const
  return send(request, String(handle.fd), options)
}

function typeOf(path: string): string {
  const type = send.mime.getType(path) ?? 'application/octet-stream'
  return send.isUtf8MimeType(type) ? `${type}; charset=utf-8` : type
}

/** What the beginning of a request says that Node's parser has rejected. */
export interface RequestBeginning {
  readonly method: string
  readonly path: string
  /** The fields that have arrived, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
}

/** How much of a head is kept for the response to it, in bytes. Browsers send `Cookie` last. */
export const beginningBytes = 4096

const requestLine = /^([A-Z]{1,16}) (\/[\x21-\x7e]*) HTTP\/1\.[01]\r\n/

/**
 * Reads the beginning of a request, only to choose the response to it: no parser has accepted it.
 * `undefined` when it does not look like a request.
 */
export function requestBeginning(bytes: Buffer | undefined): RequestBeginning | undefined {
  const text = bytes?.toString('latin1', 0, beginningBytes) ?? ''
  const [line, method, target] = requestLine.exec(text) ?? []
  if (line === undefined || method === undefined || target === undefined) return undefined
  const fields = text.slice(line.length).matchAll(/^([\w-]{1,64}): *(.*)\r$/gm)
  const headers = Object.fromEntries([...fields].map(([, name = '', value = '']) => [name.toLowerCase(), value]))
  return { method, path: target.replace(/\?.*$/, ''), headers }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'

const program = fileURLToPath(
  new URL('../../node_modules/yaml-language-server/bin/yaml-language-server', import.meta.url),
)

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
}

/** A place in a document: line and character from 0, as the Language Server Protocol counts. */
export interface Position {
  readonly line: number
  readonly character: number
}

export interface EditorDiagnostic {
  readonly message: string
  readonly range: { readonly start: Position; readonly end: Position }
}

/** A document that is open in an editor that uses the YAML language server. */
export interface OpenDocument {
  /** Resolves to the diagnostics when the server has sent them for this version of the text. */
  diagnostics(): Promise<readonly EditorDiagnostic[]>
  /** The labels of the completions at a position. */
  completion(at: Position): Promise<readonly string[]>
  /** The hover text at a position. */
  hover(at: Position): Promise<string>
}

/**
 * Starts the YAML language server over standard input and output, as editors do, and opens a file.
 */
export async function openInEditor(t: TestContext, file: string, text: string): Promise<OpenDocument> {
  const child = spawn(process.execPath, [program, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const responses = new Map<number, (result: unknown) => void>()
  const published = new Map<string, (diagnostics: readonly EditorDiagnostic[]) => void>()
  const send = (message: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }
  let lastId = 0
  const ask = <T>(method: string, params: unknown) =>
    new Promise<T>((resolve) => {
      lastId += 1
      responses.set(lastId, resolve as (result: unknown) => void)
      send({ id: lastId, method, params })
    })
  const receive = ({ id, method, params, result }: Message) => {
    if (method === undefined) return responses.get(id as number)?.(result)
    if (method === 'textDocument/publishDiagnostics') {
      const { uri, diagnostics } = params as { uri: string; diagnostics: EditorDiagnostic[] }
      return published.get(uri)?.(diagnostics)
    }
    // The settings are empty. All other requests get null, as from an editor without settings.
    const items = (params as { items?: unknown[] } | undefined)?.items ?? []
    if (id !== undefined) send({ id, result: method === 'workspace/configuration' ? items.map(() => ({})) : null })
  }
  readMessages(child.stdout, receive)

  const folder = pathToFileURL(file.slice(0, file.lastIndexOf('/'))).href
  const capabilities = {
    textDocument: { completion: { completionItem: { snippetSupport: true } }, hover: {}, publishDiagnostics: {} },
    workspace: { configuration: true },
  }
  await ask('initialize', {
    processId: process.pid,
    rootUri: folder,
    capabilities,
    workspaceFolders: [{ uri: folder, name: 'test' }],
  })
  send({ method: 'initialized', params: {} })
  send({
    method: 'workspace/didChangeConfiguration',
    params: { settings: { yaml: { schemaStore: { enable: false } } } },
  })

  const uri = pathToFileURL(file).href
  const diagnostics = new Promise<readonly EditorDiagnostic[]>((resolve) => published.set(uri, resolve))
  send({ method: 'textDocument/didOpen', params: { textDocument: { uri, languageId: 'yaml', version: 1, text } } })
  return {
    diagnostics: () => diagnostics,
    completion: async (position) => {
      const list = await ask<{ items: { label: string }[] }>('textDocument/completion', {
        textDocument: { uri },
        position,
      })
      return list.items.map(({ label }) => label)
    },
    hover: async (position) => {
      const shown = await ask<{ contents: { value: string } } | null>('textDocument/hover', {
        textDocument: { uri },
        position,
      })
      return shown?.contents.value ?? ''
    },
  }
}

/** A header before each message gives its length in bytes. */
function readMessages(stream: NodeJS.ReadableStream, receive: (message: Message) => void): void {
  let buffered: Buffer = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk])
    for (;;) {
      const head = buffered.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/i.exec(buffered.subarray(0, Math.max(0, head)).toString())?.[1])
      if (head < 0 || buffered.length < head + 4 + length) return
      receive(JSON.parse(buffered.subarray(head + 4, head + 4 + length).toString()) as Message)
      buffered = buffered.subarray(head + 4 + length)
    }
  })
}

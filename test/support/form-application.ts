import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** A request with content, as the application received it. */
export interface ReceivedContent {
  readonly person: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly content: Buffer
}

export interface FormApplication {
  readonly url: URL
  /** All requests that are not GET, in order. */
  readonly received: readonly ReceivedContent[]
}

const forms = `<!doctype html><html lang="en"><title>Forms</title>
<form id="plain" method="post" action="/orders?new=1">
  <label>Item <input name="item"></label><label>Note <textarea name="note"></textarea></label><button>Order</button></form>
<form id="files" method="post" action="/upload" enctype="multipart/form-data">
  <label>Title <input name="title"></label><label>File <input type="file" name="file"></label><button>Upload</button></form>
<form id="again" method="post"><label>Comment <input name="comment"></label><button>Comment</button></form>
<form id="empty" method="post" action="/delete"><button>Delete</button></form>`

/**
 * A small application with forms, as an ordinary program has them: GET shows the forms, and POST
 * shows a page with what was received. Below `/redirecting/`, POST redirects to the
 * forms.
 */
export async function startFormApplication(t: TestContext): Promise<FormApplication> {
  const received: ReceivedContent[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const { method = '', url = '', headers } = req
      res.setHeader('Content-Type', 'text/html; charset=utf-8')
      if (method === 'GET') return res.end(forms)
      const person = String(headers['x-remote-user'] ?? '')
      received.push({ person, method, url, headers, content: Buffer.concat(chunks) })
      if (url.startsWith('/redirecting/')) return res.writeHead(303, { Location: '/forms' }).end()
      return res.end(`<!doctype html><html lang="en"><title>Received</title><h1>Thank you, ${person}</h1>`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close().closeAllConnections())
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), received }
}

// A page with the files of a usual application: styles, scripts and images, 1 MiB in all. Every
// second file may be kept by the browser without a question, the others are asked about (304).

interface PageFile {
  readonly path: string
  readonly type: string
  readonly content: Buffer
}

/** How many files the page has besides itself. */
export const fileCount = 60
const kib = 1024
/**
 * Sizes in KiB, which take turns: few large files and many small ones, as applications have them.
 */
const kinds = {
  css: { type: 'text/css', sizes: [4, 12, 30], content: (bytes: number) => '/**/'.padEnd(bytes, ' ') },
  js: { type: 'text/javascript', sizes: [2, 6, 15, 40, 100], content: (bytes: number) => '/**/'.padEnd(bytes, ' ') },
  svg: {
    type: 'image/svg+xml',
    sizes: [1, 2, 4, 8, 20],
    content: (bytes: number) =>
      '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><circle r="8"/></svg>'.padEnd(bytes, ' '),
  },
} as const

const files = Array.from({ length: fileCount }, (_, n): PageFile => {
  const name = n < 6 ? 'css' : n < 26 ? 'js' : 'svg'
  const { type, sizes, content } = kinds[name]
  return { path: `/page/${n}.${name}`, type, content: Buffer.from(content((sizes[n % sizes.length] ?? 1) * kib)) }
})

const links = files.map(({ path, type }) =>
  type === 'text/css'
    ? `<link rel="stylesheet" href="${path}">`
    : type === 'text/javascript'
      ? `<script defer src="${path}"></script>`
      : `<img alt="" width="16" height="16" src="${path}">`,
)
const page = Buffer.from(`<!doctype html><title>Application</title>${links.join('\n')}<p>All of it.`)
const pageWithoutFiles = Buffer.from('<!doctype html><title>Application</title><p>Welcome.')
const entityTag = '"5f3c-19b2a7d4c80"'

/** The response to a request for the page or one of its files. `undefined`: it is for neither. */
export function pageResponse(head: string): Buffer | undefined {
  const path = /^GET (\/page\/\S*)/.exec(head)?.[1]
  if (path === '/page/') return responseOf('text/html', 'no-cache', page)
  if (path === '/page/alone') return responseOf('text/html', 'no-cache', pageWithoutFiles)
  const n = files.findIndex((file) => file.path === path)
  const file = files[n]
  if (file === undefined) return undefined
  if (n % 2 === 0) return responseOf(file.type, 'private, max-age=86400', file.content)
  const isKnown = head.toLowerCase().includes(`\r\nif-none-match: ${entityTag}`)
  if (isKnown) return Buffer.from(`HTTP/1.1 304 Not Modified\r\ncache-control: no-cache\r\netag: ${entityTag}\r\n\r\n`)
  return responseOf(file.type, `no-cache\r\netag: ${entityTag}`, file.content)
}

function responseOf(type: string, cacheControl: string, content: Buffer): Buffer {
  const lines = ['HTTP/1.1 200 OK', `content-type: ${type}`, `content-length: ${content.length}`]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\ncache-control: ${cacheControl}\r\n\r\n`), content])
}

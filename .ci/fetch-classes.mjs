// esbuild puts these in place of the global `Headers` and `Response` (`inject` in bundle.mjs).
// Those of Node.js would load its whole HTTP client.
import headers from 'undici/lib/web/fetch/headers.js'
import response from 'undici/lib/web/fetch/response.js'

export const { Headers } = headers
export const { Response } = response

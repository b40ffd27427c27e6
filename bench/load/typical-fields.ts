/** The fields of a script that a browser runs, beside `Host`, `Referer` and `Cookie`. */
export const requestFields: Readonly<Record<string, string>> = {
  'sec-ch-ua': '"Chromium";v="142", "Not=A?Brand";v="24", "Google Chrome";v="142"',
  'sec-ch-ua-mobile': '?0',
  'sec-ch-ua-platform': '"Linux"',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  accept: 'application/json, text/plain, */*',
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'en-US,en;q=0.9,de;q=0.8',
}

/** Cookies of the application beside that of the session. */
export const cookies = ['theme=dark', 'csrftoken=Qm1hZ2ljLXRva2VuLW9mLXRoZS1hcHBsaWNhdGlvbg']

/** The fields of a usual response, beside `Date`, `Content-Type` and `Content-Length`. */
export const responseFields: Readonly<Record<string, string>> = {
  server: 'application',
  'cache-control': 'private, max-age=0, must-revalidate',
  etag: '"5f3c-19b2a7d4c80"',
  'last-modified': 'Mon, 02 Nov 2026 08:15:00 GMT',
  vary: 'Accept-Encoding',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'SAMEORIGIN',
}

/** Whether the head of a request has all of these fields and cookies. */
export function hasTypicalFields(head: string): boolean {
  const lines = head.split('\r\n').map((line) => line.toLowerCase())
  return (
    Object.entries(requestFields).every(([name, value]) => lines.includes(`${name}: ${value}`.toLowerCase())) &&
    cookies.every((cookie) => head.includes(cookie))
  )
}

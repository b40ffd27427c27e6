import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type BrowserContext, chromium } from 'playwright-core'
import { issueCertificates } from './certificates.ts'
import { chromiumArguments, chromiumPath } from './chromium-program.ts'

/**
 * A Chromium with a profile of its own that can bind sessions: it keeps the keys in software. It
 * finds all names below `example.test` on this machine.
 */
export async function startDeviceChromium(t: TestContext): Promise<BrowserContext> {
  const { publicKey } = new X509Certificate(readFileSync(issueCertificates().server.cert))
  const spki = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64')
  const context = await chromium.launchPersistentContext('', {
    executablePath: chromiumPath(),
    args: [
      ...chromiumArguments,
      '--enable-features=DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting',
      // Chromium binds no sessions where certificate errors are ignored in another way.
      `--ignore-certificate-errors-spki-list=${spki}`,
      '--host-resolver-rules=MAP *.example.test 127.0.0.1',
    ],
  })
  t.after(() => context.close())
  context.setDefaultTimeout(30_000)
  return context
}

import { gzipSync } from 'node:zlib'
import type { Browser, Response } from 'playwright-core'
import { packages, startPhpMyAdmin } from '../test/applications/debian.ts'
import { installDebian } from '../test/applications/installed.ts'
import { writeRecording, type Recorded } from './recording.ts'

/** The path of its main page. Scripts of the page send further requests to it. */
export const mainPage = '/index.php'
/** They are of the connection, or the bench sends its own. */
const omitted = new Set(['connection', 'content-length', 'date', 'host', 'keep-alive', 'transfer-encoding'])

/**
 * Starts a phpMyAdmin, loads its main page, and records what it sends. The bench sends the
 * recording, because PHP and the database would need most of the time.
 * @returns how many files the page has besides itself, and their bytes
 * @throws {Missing} when it is not installed and cannot be
 */
export async function recordMainPage(
  browser: Browser,
  folder: string,
): Promise<{ readonly files: number; readonly bytes: number }> {
  installDebian(packages.phpmyadmin)
  const endings: (() => unknown)[] = []
  try {
    const server = `['auth_type' => 'config', 'host' => 'localhost', 'user' => 'root', 'AllowNoPassword' => true]`
    const { url } = await startPhpMyAdmin(
      { after: (ending) => void endings.push(ending) },
      { accounts: '', config: `<?php\n$cfg['Servers'][1] = ${server};` },
    )
    const page = await browser.newPage()
    const responses: Response[] = []
    page.on('response', (response) => void responses.push(response))
    await page.goto(url.origin + mainPage, { waitUntil: 'networkidle' })
    const recording: Record<string, Recorded> = {}
    for (const response of responses.filter((each) => each.url().startsWith(url.origin))) {
      const target = response.url().slice(url.origin.length)
      recording[`${response.request().method()} ${target}`] = await recorded(response, !target.startsWith(mainPage))
    }
    await page.close()
    writeRecording(folder, recording)
    const files = Object.values(recording).filter(({ isFile }) => isFile)
    const bytes = files.map(({ content }) => Buffer.from(content, 'base64').length)
    return { files: files.length, bytes: bytes.reduce((sum, each) => sum + each, 0) }
  } finally {
    for (const end of endings) await end()
  }
}

/** @throws {Error} unless it is a 200 */
async function recorded(response: Response, isFile: boolean): Promise<Recorded> {
  if (response.status() !== 200) throw new Error(`${response.url()}: ${response.status()}`)
  const fields = (await response.headersArray()).map(({ name, value }) => [name.toLowerCase(), value] as const)
  const content = await response.body()
  // The browser has decompressed it.
  const sent = response.headers()['content-encoding'] === 'gzip' ? gzipSync(content) : content
  return { isFile, fields: fields.filter(([name]) => !omitted.has(name)), content: sent.toString('base64') }
}

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import {
  atSignIn,
  blockOf,
  dataFolder,
  endAtProvider,
  journeysWith,
  signIn,
  startGatewayFor,
  startProgram,
  tabOf,
} from './application.ts'
import { installDebian } from './installed.ts'

const home = '/usr/share/tomcat10'
const examples = '/usr/share/tomcat10-examples/examples'

/** Starts a Tomcat with files of its own, and the example applications. */
async function startTomcat(t: TestContext) {
  const base = dataFolder(t)
  for (const folder of ['conf', 'logs', 'temp', 'work', 'webapps']) mkdirSync(join(base, folder))
  const port = await freePort()
  writeFileSync(
    join(base, 'conf', 'server.xml'),
    `<Server port="-1"><Service name="Catalina"><Connector port="${port}" address="127.0.0.1" />
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps">
    <Context path="/examples" docBase="${examples}" />
    ${blockOf('tomcat', 'xml')}</Host></Engine></Service></Server>`,
  )
  writeFileSync(
    join(base, 'conf', 'web.xml'),
    `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0"><servlet><servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class></servlet>
    <servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping></web-app>`,
  )
  const classes = ['bootstrap.jar', 'tomcat-juli.jar'].map((name) => join(home, 'bin', name)).join(':')
  const folders = [`-Dcatalina.home=${home}`, `-Dcatalina.base=${base}`, `-Djava.io.tmpdir=${join(base, 'temp')}`]
  const main = 'org.apache.catalina.startup.Bootstrap'
  const url = new URL(`http://127.0.0.1:${port}/examples/servlets/servlet/SessionExample`)
  return startProgram(t, ['java', '-Xmx256m', '-cp', classes, ...folders, main, 'start'], url)
}

const session = '/examples/servlets/servlet/SessionExample'

async function remember(page: Page, name: string, value: string): Promise<void> {
  await page.locator('input[name=dataname]').first().fill(name)
  await page.locator('input[name=datavalue]').first().fill(value)
  await page.locator('input[type=submit]').first().click()
  await page.getByText(`${name} = ${value}`).waitFor()
}

const install = () => installDebian({ tomcat10: `${home}/bin/bootstrap.jar`, 'tomcat10-examples': examples })

journeysWith('Tomcat', install, {
  'a person uses a servlet session, and the next one in the same browser gets another': async (t, chromium) => {
    const world = await startGatewayFor(t, await startTomcat(t), 'tomcat')
    const { page, person } = await tabOf(t, chromium)
    await signIn(page, world.url + session)
    await remember(page, 'colour', 'green')
    await page.goto(world.url + session)
    await page.getByText('colour = green').waitFor()

    await endAtProvider(world)
    await page.goto(world.url + session)
    await atSignIn(page)
    await signIn(page, world.url + session, 'Zoë Müller')

    await page.getByText('Session ID').waitFor()
    assert.doesNotMatch(await page.locator('body').innerText(), /colour/)
    assert.deepEqual(
      (await person.context.cookies()).filter(({ name }) => name === 'JSESSIONID'),
      [],
    )
  },

  'a form that is sent after the session has ended is sent after the next sign-in': async (t, chromium) => {
    const world = await startGatewayFor(t, await startTomcat(t), 'tomcat')
    const { page } = await tabOf(t, chromium)
    await signIn(page, world.url + session)
    await page.locator('input[name=dataname]').first().fill('floor')
    await page.locator('input[name=datavalue]').first().fill('second & third')

    await endAtProvider(world)
    await page.locator('input[type=submit]').first().click()
    await page.getByRole('button', { name: 'Jane Doe' }).click()
    await page.getByRole('button', { name: 'Send now' }).click()

    await page.getByText('floor = second & third').waitFor()
  },

  'a redirect of a servlet stays at the address of the gateway': async (t, chromium) => {
    const world = await startGatewayFor(t, await startTomcat(t), 'tomcat')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/examples`)
    await page.waitForURL(`${world.url}/examples/`)
  },
})

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { installDebian } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, startProgram } from './programs.ts'

const home = '/usr/share/tomcat10'
const examples = '/usr/share/tomcat10-examples/examples'

/** An application with a session and a form, whose pages do not know of the gateway. */
const orders = `<%@ page contentType="text/html; charset=utf-8" %><% request.setCharacterEncoding("utf-8");
  if (request.getParameter("item") != null) session.setAttribute("item", request.getParameter("item")); %>
<!doctype html><html lang="en"><title>Orders</title><style>body { font: 16px/1.6 sans-serif; margin: 3rem }</style>
<h1>Orders</h1><p>Signed in as <b><%= request.getHeader("X-Remote-User") %></b></p>
<form method="post"><label>Item <input name="item"></label> <button>Order</button></form>
<p>In this session: <%= session.getAttribute("item") %></p></html>`

/** Starts a Tomcat with files of its own, its example applications and the application above. */
async function startTomcat(t: TestContext) {
  const base = dataFolder(t)
  for (const folder of ['conf', 'logs', 'temp', 'work', 'webapps/orders/WEB-INF'])
    mkdirSync(join(base, folder), { recursive: true })
  const port = await freePort()
  writeFileSync(
    join(base, 'conf', 'server.xml'),
    `<Server port="-1"><Service name="Catalina"><Connector port="${port}" address="127.0.0.1" />
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps">
    <Context path="/examples" docBase="${examples}" />
    ${blockOf('tomcat', 'xml', '<Valve')}</Host></Engine></Service></Server>`,
  )
  const servlet = (name: string, type: string, patterns: readonly string[]) =>
    `<servlet><servlet-name>${name}</servlet-name><servlet-class>org.apache.${type}</servlet-class></servlet>
    <servlet-mapping><servlet-name>${name}</servlet-name>${patterns.map((each) => `<url-pattern>${each}</url-pattern>`).join('')}</servlet-mapping>`
  const webApp = (content: string) =>
    `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">${content}</web-app>`
  writeFileSync(
    join(base, 'conf', 'web.xml'),
    webApp(
      servlet('default', 'catalina.servlets.DefaultServlet', ['/']) +
        servlet('jsp', 'jasper.servlet.JspServlet', ['*.jsp', '*.jspf']),
    ),
  )
  const application = join(base, 'webapps', 'orders')
  writeFileSync(join(application, 'index.jsp'), orders)
  writeFileSync(
    join(application, 'WEB-INF', 'web.xml'),
    webApp(blockOf('tomcat', 'xml', '<session-config>') + blockOf('tomcat', 'xml', '<jsp-config>')),
  )
  writeFileSync(join(application, 'WEB-INF', 'notice.jspf'), blockOf('tomcat', 'html'))
  const classes = ['bootstrap.jar', 'tomcat-juli.jar'].map((name) => join(home, 'bin', name)).join(':')
  const folders = [`-Dcatalina.home=${home}`, `-Dcatalina.base=${base}`, `-Djava.io.tmpdir=${join(base, 'temp')}`]
  const main = 'org.apache.catalina.startup.Bootstrap'
  const url = new URL(`http://127.0.0.1:${port}/orders/index.jsp`)
  return startProgram(t, ['java', '-Xmx256m', '-cp', classes, ...folders, main, 'start'], url)
}

const session = '/examples/servlets/servlet/SessionExample'

const subject: Subject = {
  name: 'Tomcat',
  page: 'tomcat',
  install: () =>
    installDebian({ tomcat10: `${home}/bin/bootstrap.jar`, 'tomcat10-examples': examples }, ['tomcat10', '10.1']),
  start: startTomcat,
  home: '/orders/index.jsp',
  showsPerson: (page, person) => page.getByText(`Signed in as ${person === 'Jane Doe' ? 'jane' : 'zoe'}`).waitFor(),
  use: async (page, site) => {
    await page.goto(site.url + session)
    await page.locator('input[name=dataname]').first().fill('colour')
    await page.locator('input[name=datavalue]').first().fill('green of jane')
    await page.locator('input[type=submit]').first().click()
    await page.getByText('colour = green of jane').waitFor()
    await page.goto(`${site.url}/orders/index.jsp`)
    await page.getByLabel('Item').fill('paper of jane')
    await page.getByRole('button', { name: 'Order' }).click()
    await page.getByText('In this session: paper of jane').waitFor()
  },
  sessionCookies: /^JSESSIONID/,
  form: {
    fill: async (page, site, text) => {
      await page.goto(site.url + session)
      await page.locator('input[name=dataname]').first().fill('floor')
      await page.locator('input[name=datavalue]').first().fill(text)
    },
    send: (page) => page.locator('input[type=submit]').first().click(),
    isSaved: (page, _site, text) => page.getByText(`floor = ${text}`).waitFor(),
  },
  hasNotice: true,
}

journeysOf(subject, {
  'a redirect of a servlet stays at the address of the gateway': async (t) => {
    const { site, page } = await signedIn(t, subject)
    await page.goto(`${site.url}/examples`)
    await page.waitForURL(`${site.url}/examples/`)
  },
})

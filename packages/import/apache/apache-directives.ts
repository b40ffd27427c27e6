import { ownMember } from '../../../src/entries/import.ts'
/**
 * The directives of httpd that restrict no request for an application: a gateway without them
 * admits the same people. All other directives may restrict access.
 */
const harmless = new Set(
  [
    // Processes, files of the server, and connections.
    `chrootdir coredumpdirectory defaultruntimedir extendedstatus gracefulshutdowntimeout group listen listenbacklog
    listencoresbucketsratio loadfile loadmodule maxclients maxconnectionsperchild maxmemfree maxrequestsperchild
    maxrequestworkers maxspareservers maxsparethreads minspareservers minsparethreads mutex pidfile receivebuffersize
    rlimitcpu rlimitmem rlimitnproc scoreboardfile seerequesttail sendbuffersize serverlimit serverroot startservers
    suexec suexecusergroup threadlimit threadsperchild threadstacksize user watchdoginterval asyncrequestworkerfactor
    acceptfilter enablemmap enablesendfile flushmaxpipelined flushmaxthreshold keepalive keepalivetimeout
    limitinternalrecursion limitrequestbody limitrequestfields limitrequestfieldsize limitrequestline
    limitxmlrequestbody maxkeepaliverequests readbuffersize requestreadtimeout timeout`,
    // The host and the protocol. The gateway serves the hosts of external_url, and no TRACE.
    `allowencodedslashes contentdigest fileetag hostnamelookups httpprotocoloptions identitycheck identitychecktimeout
    maxrangeoverlaps maxrangereversals maxranges mergeslashes mergetrailers namevirtualhost protocol protocols
    protocolshonororder qualifyredirecturl regexdefaultoptions registerhttpmethod serveradmin serveralias servername
    serverpath serversignature servertokens stricthostcheck traceenable usecanonicalname usecanonicalphysicalport`,
    // TLS. The directives about certificates of clients have an effect with SSLVerifyClient only.
    `sslcacertificatefile sslcacertificatepath sslcadnrequestfile sslcadnrequestpath sslcarevocationcheck
    sslcarevocationfile sslcarevocationpath sslcertificatechainfile sslcertificatefile sslcertificatekeyfile
    sslciphersuite sslcompression sslcryptodevice sslengine sslfips sslhonorcipherorder sslinsecurerenegotiation
    ssllog sslloglevel sslocspdefaultresponder sslocspenable sslocspnoverify sslocspoverrideresponder sslocspproxyurl
    sslocsprespondercertificatefile sslocsprespondertimeout sslocspresponsemaxage sslocspresponsetimeskew
    sslocspuserequestnonce sslopensslconfcmd ssloptions sslpassphrasedialog sslprotocol sslproxycacertificatefile
    sslproxycacertificatepath sslproxycarevocationcheck sslproxycarevocationfile sslproxycarevocationpath
    sslproxycheckpeercn sslproxycheckpeerexpire sslproxycheckpeername sslproxyciphersuite sslproxyengine
    sslproxyprotocol sslproxyverify sslproxyverifydepth sslrandomseed sslrenegbuffersize sslsessioncache
    sslsessioncachetimeout sslsessionticketkeyfile sslsessiontickets sslstaplingcache sslstaplingerrorcachetimeout
    sslstaplingfaketrylater sslstaplingforceurl sslstaplingrespondertimeout sslstaplingresponsemaxage
    sslstaplingresponsetimeskew sslstaplingreturnrespondererrors sslstaplingstandardcachetimeout
    sslstrictsnivhostcheck sslusestapling sslverifydepth sslvhostsnipolicy mdomain mdomainset mdmember mdmembers`,
    // How Apache forwards requests.
    `balancergrowth balancerinherit balancerpersist noproxy proxy100continue proxyaddheaders proxybadheader proxydomain
    proxyerroroverride proxyiobuffersize proxymaxforwards proxypassinherit proxypassreverse
    proxypassreversecookiedomain proxypassreversecookiepath proxypreservehost proxyreceivebuffersize proxyremote
    proxyremotematch proxyrequests proxyset proxysourceaddress proxystatus proxytimeout proxyvia
    proxywebsocketfallbacktoproxyhttp sethandler`,
    // Files that Apache serves. ProxyPass forwards the other paths.
    `accessfilename acceptpathinfo action addalt addaltbyencoding addaltbytype addcharset adddefaultcharset
    adddescription addencoding addhandler addicon addiconbyencoding addiconbytype addlanguage addtype alias aliasmatch
    aliaspreservepath cgipassauth cgiscripttimeout cgivar charsetdefault charsetoptions charsetsourceenc defaulticon
    defaultlanguage defaulttype directorycheckhandler directoryindex directoryindexredirect directoryslash documentroot
    errordocument expiresactive expiresbytype expiresdefault fallbackresource fancyindexing forcelanguagepriority
    forcetype headername indexheadinsert indexignore indexignorereset indexoptions indexorderdefault indexstylesheet
    languagepriority mimemagicfile modmimeusepathinfo multiviewsmatch options readmename removecharset removeencoding
    removehandler removelanguage removetype script scriptalias scriptaliasmatch scriptlog scriptloglength
    scriptlogbuffer scriptsock typesconfig userdir`,
    // Compression, caches and logs.
    `brotlialteretag brotlicompressionmaxinputblock brotlicompressionquality brotlicompressionwindow brotlifilternote
    buffersize bufferedlogs customlog deflatealteretag deflatebuffersize deflatecompressionlevel deflatefilternote
    deflatememlevel deflatewindowsize errorlog errorlogformat forensiclog globallog logformat logiotrackttfb loglevel
    logmessage transferlog`,
    // Variables. A Require, a header or a RewriteRule that reads one is not translated.
    'browsermatch browsermatchnocase passenv setenv setenvif setenvifexpr setenvifnocase unsetenv undefine',
    // Without RewriteRule, these do nothing. A Require that names an alias is not translated.
    'rewritebase rewriteengine rewritemap rewriteoptions redirectrelative authnprovideralias authzprovideralias',
    'secauditengine secauditlog secauditlogformat secauditlogparts secauditlogstoragedir secauditlogtype',
    'secdatadir secdebuglog secdebugloglevel secrequestbodyaccess secresponsebodyaccess sectmpdir',
  ].flatMap((names) => names.split(/\s+/)),
)

/** With these values, a directive restricts nothing. */
const harmlessValues: Readonly<Record<string, RegExp>> = {
  sslverifyclient: /^(?:none|optional|optional_no_ca)$/i,
  secruleengine: /^(?:off|detectiononly)$/i,
  allowoverride: /^none$/i,
  proxypassinterpolateenv: /^off$/i,
  dav: /^off$/i,
}

/** Directives that may contain a variable, because they do not decide about access. */
const secrets = /^oidc(?:clientsecret|cryptopassphrase|rediscachepassword)$/

/** Whether a gateway without a directive admits the same people. Its name is in lower case. */
export function restrictsNothing({ name, args }: { readonly name: string; readonly args: readonly string[] }): boolean {
  const isHarmless = harmless.has(name) || responseDirectives.has(name) || secrets.test(name)
  return isHarmless || ownMember(harmlessValues, name)?.test(args.join(' ')) === true
}

/** Directives about responses, and what the gateway has for them. */
export const responseDirectives: ReadonlyMap<string, string> = new Map(
  (
    [
      [
        'addinputfilter addoutputfilter addoutputfilterbytype extfilterdefine extfilteroptions filterchain filterdeclare filterprotocol filterprovider filtertrace inputsed outputsed removeinputfilter removeoutputfilter setinputfilter setoutputfilter substitute substituteinheritbefore substitutemaxlinelength',
        'contents are not changed; compress of the upstream compresses them',
      ],
      [
        'proxyhtmlbufsize proxyhtmlcharsetout proxyhtmldoctype proxyhtmlenable proxyhtmlevents proxyhtmlextended proxyhtmlfixups proxyhtmlinterp proxyhtmllinks proxyhtmlmeta proxyhtmlstripcomments proxyhtmlurlmap xml2encalias xml2encdefault xml2startparse',
        'rewrite_content of the upstream replaces addresses in pages',
      ],
      [
        'cachedefaultexpire cachedetailheader cachedirlength cachedirlevels cachedisable cacheenable cacheheader cacheignorecachecontrol cacheignoreheaders cacheignorenolastmod cacheignorequerystring cacheignoreurlsessionidentifiers cachekeybaseurl cachelastmodifiedfactor cachelock cachelockmaxage cachelockpath cachemaxexpire cachemaxfilesize cacheminexpire cacheminfilesize cachequickhandler cachereadsize cachereadtime cacheroot cachesocache cachesocachemaxsize cachestaleonerror cachestoreexpired cachestorenostore cachestoreprivate',
        'the gateway stores no responses',
      ],
      ['header', 'it is not translated; write response_headers of the upstream'],
    ] as const
  ).flatMap(([names, why]) => names.split(' ').map((name) => [name, why] as const)),
)

import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/**
 * The system's Chromium, headless, with everything off that would look for the network beyond loopback. Close it in `afterAll`.
 * Throws where none is installed.
 */
export function launchBrowser(): Promise<Browser> {
  const executablePath = places.find((place) => existsSync(place))
  if (!executablePath)
    throw new Error(`The browser tests need Chromium at one of ${places.join(', ')} (on Debian: apt-get install chromium)`)
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox', // as root there is no other way, and only our own page is opened
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

import packageJson from '../../../package.json' with { type: 'json' }

/** The version that is running, as package.json says. */
export const version: string = packageJson.version

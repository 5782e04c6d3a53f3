import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const server = 'http://127.0.0.1:3000'

/** `vite build -c apps/web/vite.config.ts` writes dist/web; `vite -c …` serves the page and passes the API on to a running server. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    // The server's content security policy allows neither inline scripts nor data: scripts and fonts.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/docs', '/health'].map((path) => [path, { target: server, changeOrigin: true, headers: { origin: server } }]),
    ),
  },
})

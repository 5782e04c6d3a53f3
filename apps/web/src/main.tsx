import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/index.css'
import { sessionApi } from './api/endpoints.ts'
import { App } from './app.tsx'
import { ErrorBoundary } from './parts/error-boundary.tsx'
import { SessionProvider, takeSigninSecret } from './store/session.tsx'
import { applyPreferences } from './words/preferences.ts'

applyPreferences()
const secret = takeSigninSecret()
const redemption = secret === null ? null : sessionApi.redeem(secret)
const root = document.getElementById('root')
if (root === null) throw new Error('the page has no root element')
createRoot(root).render(
  <StrictMode>
    <ErrorBoundary>
      <SessionProvider redemption={redemption}>
        <App />
      </SessionProvider>
    </ErrorBoundary>
  </StrictMode>,
)

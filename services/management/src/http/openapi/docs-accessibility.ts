/**
 * Corrects the accessibility of Swagger UI for low vision, keyboards and screen readers from outside, because it has no
 * options for that. `e2e/console/docs-page.long.test.ts` checks every state with axe.
 */

/** Raises the contrast of texts to 4.5 : 1, and that of borders, in both modes. INITIALIZER sets the class `dark-mode`. */
export const ACCESSIBILITY_STYLES = `
html:not(.dark-mode) .swagger-ui .info .title small { background: #5a6170; }
html:not(.dark-mode) .swagger-ui .info .title small.version-stamp { background: #3d6b00; }
html:not(.dark-mode) .swagger-ui .info .url,
html:not(.dark-mode) .swagger-ui .info a,
html:not(.dark-mode) .swagger-ui a.nostyle[href],
html:not(.dark-mode) .swagger-ui .model-box-control + a { color: #1a5fb4; }
html:not(.dark-mode) .swagger-ui .btn.authorize { border-color: #17703f; color: #17703f; }
html:not(.dark-mode) .swagger-ui .btn.cancel,
html:not(.dark-mode) .swagger-ui .parameter__name.required::after,
html:not(.dark-mode) .swagger-ui .parameter__name.required span { color: #c01c28; }
html:not(.dark-mode) .swagger-ui .btn.cancel { border-color: #c01c28; }
html:not(.dark-mode) .swagger-ui .parameter__in,
html:not(.dark-mode) .swagger-ui .parameter__deprecated,
html:not(.dark-mode) .swagger-ui .prop-format,
html:not(.dark-mode) .swagger-ui .response-control-media-type__accept-message { color: #4f565e; }
html:not(.dark-mode) .swagger-ui .response-control-media-type__accept-message { color: #1d6b2e; }
html:not(.dark-mode) .swagger-ui input::placeholder,
html:not(.dark-mode) .swagger-ui textarea::placeholder { color: #63686e; opacity: 1; }
.swagger-ui .opblock .opblock-summary-method { text-shadow: none; }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1a5fb4; color: #fff; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #17703f; color: #fff; }
.swagger-ui .opblock.opblock-put .opblock-summary-method { background: #8a4b00; color: #fff; }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b01923; color: #fff; }
.swagger-ui .btn.execute { background: #1a5fb4; border-color: #1a5fb4; color: #fff; }
.swagger-ui .highlight-code > .microlight code > span[style] { color: #f0f1f1 !important; }
html:not(.dark-mode) .swagger-ui .json-schema-2020-12-expand-deep-button { color: #4f565e; }
html:not(.dark-mode) .swagger-ui .json-schema-2020-12__constraint { background: #5a6170; color: #fff; }
html:not(.dark-mode) .swagger-ui .markdown code,
html:not(.dark-mode) .swagger-ui .renderedMarkdown code { color: #7a0fb5; }
html.dark-mode .swagger-ui .opblock .btn.try-out__btn.cancel { border-color: #ffb3b3; color: #ffb3b3; }
html.dark-mode .swagger-ui .headers .header-col { color: #e4e6e6; }
html.dark-mode .swagger-ui .opblock.opblock-put .opblock-section-header { background: #5f3517; }
.swagger-ui .responses-inner, .swagger-ui .table-container { overflow-x: auto; }
html.dark-mode .swagger-ui input::placeholder,
html.dark-mode .swagger-ui textarea::placeholder { opacity: 0.8; }
`;

/**
 * Starts the page. The document is found relative to this script's address. `validatorUrl: null` disables a badge that
 * Swagger UI would load from another host.
 *
 * The link in each operation's button is replaced by text, because a button must not contain interactive elements. An
 * observer corrects what Swagger UI renders; Swagger UI does not set these attributes again.
 */
export const INITIALIZER = `const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

const noLinkInButton = ({ React }) => ({
  wrapComponents: { DeepLink: () => ({ text }) => React.createElement('span', null, text) },
});

const SCROLLED = 'pre:not([tabindex]), .responses-inner:not([tabindex]), .table-container:not([tabindex])';
const REGIONS = { '.information-container': 'About this API', '.scheme-container': 'Server and key' };

function fix(root) {
  for (const table of root.querySelectorAll('table[role=region]')) table.removeAttribute('role');
  for (const scrolled of root.querySelectorAll(SCROLLED)) scrolled.tabIndex = 0;
  root.querySelector('.close-modal')?.setAttribute('aria-label', 'Close');
  for (const [selector, name] of Object.entries(REGIONS)) {
    const region = root.querySelector(selector);
    region?.setAttribute('role', 'region');
    region?.setAttribute('aria-label', name);
  }
  for (const field of root.querySelectorAll('select, input, textarea')) {
    if (field.hasAttribute('aria-label')) continue;
    const row = field.closest('[data-param-name]');
    if (row !== null) field.setAttribute('aria-label', row.dataset.paramName);
    else if (field.id === 'servers') field.setAttribute('aria-label', 'Server');
    else if (field.closest('.opblock-section-request-body')) field.setAttribute('aria-label', 'Request body');
  }
  let above = 0;
  for (const heading of root.querySelectorAll('h1, h2, h3, h4, h5')) {
    above = Math.min(above + 1, Math.max(1, Number(heading.tagName[1]) - 1));
    heading.setAttribute('aria-level', String(above));
  }
}
const container = document.querySelector('#swagger-ui');
new MutationObserver(() => fix(container)).observe(container, { childList: true, subtree: true });

const address = new URL('../openapi.json', document.currentScript.src).href;

// Below a path of a proxy, the requests of this page need that path, which the server does not know.
function withOwnServer(response) {
  if (response.url !== address || !response.ok) return response;
  const servers = [{ url: new URL('.', address).href.slice(0, -1), description: 'The server of this page.' }];
  return { ...response, text: JSON.stringify({ ...JSON.parse(response.text), servers }) };
}

window.ui = SwaggerUIBundle({
  url: address,
  responseInterceptor: withOwnServer,
  dom_id: '#swagger-ui',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  plugins: [noLinkInButton],
});
`;

// Copies what the pages load from node_modules to static/vendor, with versions and sha384 sums in manifest.json.
// Once: npm ci --ignore-scripts && npm run vendor
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import postcss from "postcss";

const OUT = "static/vendor";
const ICONS =
  "adjustments-horizontal affiliate alert-circle alert-triangle archive arrow-back-up arrow-right arrow-up arrow-up-right " +
  "arrows-exchange ban bell bolt bookmark building-store calendar-event cards certificate check chevron-down chevron-left " +
  "chevron-right circle-check circle-dashed clock clock-play code columns-3 copy corner-down-right cpu database dots " +
  "download eraser external-link eye eye-off file-certificate fingerprint flame folder git-compare git-merge help-circle " +
  "history home hourglass id inbox info-circle key keyboard language layout-dashboard layout-sidebar-left-collapse " +
  "list-details lock lock-access logout menu-2 message message-circle minus moon package pencil player-pause player-play " +
  "player-stop plug-connected plus refresh robot scissors search selector settings shield-check snowflake sparkles stack-2 " +
  "briefcase school stack-push star stethoscope sun tag target-arrow tools-kitchen-2 trash upload user users world x " +
  "zoom-scan";
// Of Tabler: its variables, its resets, and the rules about these classes. Everything else is static/css.
const CLASSES = new Set(
  ("btn btn-danger btn-icon btn-primary btn-sm disabled active show form-control form-control-sm form-label form-select " +
    "form-select-sm form-check-input is-invalid table table-responsive table-sm visually-hidden w-100").split(" "),
);
const read = (path) => readFileSync(`node_modules/${path}`, "utf8");
const inner = (svg) => svg.replace(/^[^]*?<svg[^>]*>|<\/svg>\s*$/g, "").replace(/\s*\n\s*/g, "");
const symbol = (name) => `<symbol id="${name}" viewBox="0 0 24 24">${inner(read(`@tabler/icons/icons/outline/${name}.svg`))}</symbol>`;
const isUsed = (selector) => [...selector.matchAll(/\.([a-z_][\w-]*)/gi)].every(([, name]) => CLASSES.has(name));

// Minified CSS without the rules of classes that no page uses, and without colours of themes that no page has.
function trimmed(css) {
  const sheet = postcss.parse(css);
  sheet.walkRules((rule) => {
    if (rule.parent.type === "atrule" && /keyframes/.test(rule.parent.name)) return;
    rule.selectors = rule.selectors.filter((one) => isUsed(one) && !/data-bs-theme-/.test(one));
    if (rule.selectors.length === 0 || rule.selector === "") rule.remove();
  });
  sheet.walkAtRules(/keyframes|font-face/, (rule) => rule.remove());
  sheet.walkAtRules((rule) => rule.nodes?.length === 0 && rule.remove());
  return `${sheet.toString().trim()}\n`;
}

const files = [
  ["tabler.min.css", "@tabler/core", trimmed(read("@tabler/core/dist/css/tabler.min.css"))],
  ["htmx.min.js", "htmx.org", read("htmx.org/dist/htmx.min.js")],
  ["icons.svg", "@tabler/icons", `<svg xmlns="http://www.w3.org/2000/svg">\n${ICONS.split(" ").map(symbol).join("\n")}\n</svg>\n`],
  ["inter-latin.woff2", "@fontsource-variable/inter", readFileSync("node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2")],
];

mkdirSync(OUT, { recursive: true });
const manifest = {};
for (const [file, name, content] of files) {
  const clean = typeof content === "string" ? content.replace(/\s*(\/\*|\/\/)# sourceMappingURL=[^\n]*\n?/g, "\n") : content;
  const { version, license } = JSON.parse(read(`${name}/package.json`));
  const integrity = `sha384-${createHash("sha384").update(clean).digest("base64")}`;
  manifest[file] = { package: name, version, license, integrity };
  writeFileSync(`${OUT}/${file}`, clean);
}
writeFileSync(`${OUT}/manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync("node_modules/htmx.org/LICENSE", `${OUT}/LICENSE.htmx`);
copyFileSync("node_modules/@tabler/icons/LICENSE", `${OUT}/LICENSE.tabler-icons`);
copyFileSync("node_modules/@fontsource-variable/inter/LICENSE", `${OUT}/LICENSE.inter`);

// Copies what the pages load from node_modules to static/vendor, with versions and sha384 sums in manifest.json.
// Once: npm ci --ignore-scripts && npm run vendor
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const OUT = "static/vendor";
const ICONS = "alert-triangle arrow-up chevron-left code dots external-link info-circle language logout menu-2 message " +
  "moon pencil player-stop plus sun trash x";
const read = (path) => readFileSync(`node_modules/${path}`, "utf8");
const inner = (svg) => svg.replace(/^[^]*?<svg[^>]*>|<\/svg>\s*$/g, "").replace(/\s*\n\s*/g, "");
const symbol = (name) => `<symbol id="${name}" viewBox="0 0 24 24">${inner(read(`@tabler/icons/icons/outline/${name}.svg`))}</symbol>`;
const files = [
  ["tabler.min.css", "@tabler/core", read("@tabler/core/dist/css/tabler.min.css")],
  ["htmx.min.js", "htmx.org", read("htmx.org/dist/htmx.min.js")],
  ["icons.svg", "@tabler/icons", `<svg xmlns="http://www.w3.org/2000/svg">\n${ICONS.split(" ").map(symbol).join("\n")}\n</svg>\n`],
];

mkdirSync(OUT, { recursive: true });
const manifest = {};
for (const [file, name, text] of files) {
  const clean = text.replace(/\s*(\/\*|\/\/)# sourceMappingURL=[^\n]*\n?/g, "\n");
  const { version, license } = JSON.parse(read(`${name}/package.json`));
  const integrity = `sha384-${createHash("sha384").update(clean).digest("base64")}`;
  manifest[file] = { package: name, version, license, integrity };
  writeFileSync(`${OUT}/${file}`, clean);
}
writeFileSync(`${OUT}/manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync("node_modules/htmx.org/LICENSE", `${OUT}/LICENSE.htmx`);
copyFileSync("node_modules/@tabler/icons/LICENSE", `${OUT}/LICENSE.tabler-icons`);

// Numbers and times as people read them.
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);

/** A rate: whole when large, with a tenth when small. */
export const rate = (number) => (Math.abs(number) < 10 ? tenths : whole).format(number);

export const many = (number, what, whats = `${what}s`) =>
  `${count(number)} ${number === 1 ? what : whats}`;

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) {
    number /= 1024;
    at += 1;
  }
  return `${at && number < 10 ? tenths.format(number) : whole.format(number)} ${units[at]}`;
}

/** A span of seconds in its largest unit or two: `45 s`, `12 min`, `3 h 5 min`, `2 d 4 h`. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function percent(share) {
  const hundredths = 100 * share;
  if (hundredths > 0 && hundredths < 0.1) return "< 0.1 %";
  return `${hundredths < 10 ? tenths.format(hundredths) : whole.format(hundredths)} %`;
}

//! Cron expressions: five fields in local time.
//!
//! `minute hour day-of-month month day-of-week`, each `*`, a number, a range `a-b`, a list `a,b` or a step `*/n`, `a-b/n`.
//! Where both days are limited, either one suffices, as in every cron. `L`, `W`, `?` and names are refused: programs
//! disagree about them, and a schedule that runs on other days than its author meant is worse than a refusal.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use std::fmt;

/// Bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 256;
/// Days that the search for the next time looks ahead. February 29 comes after at most eight years.
const MAX_SEARCH_DAYS: usize = 366 * 9;

/// A set of values of a field, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldValues(u64);

impl FieldValues {
    /// Whether it contains a value.
    fn contains(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| value < u64::BITS && self.0 & (1 << value) != 0)
    }

    /// The smallest value that is not below `from`.
    fn next_from(self, from: i8) -> Option<i8> {
        (from..i8::try_from(u64::BITS).unwrap_or(i8::MAX)).find(|value| self.contains(*value))
    }
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression {
    /// As it was written, with single spaces.
    text: String,
    minutes: FieldValues,
    hours: FieldValues,
    days: FieldValues,
    months: FieldValues,
    weekdays: FieldValues,
    /// The day of the month is not `*`.
    limits_days: bool,
    /// The day of the week is not `*`.
    limits_weekdays: bool,
}

impl CronExpression {
    /// Parses an expression. The error says which field is wrong.
    ///
    /// ```
    /// use toolgate_state::CronExpression;
    ///
    /// assert_eq!(CronExpression::parse("*/15 * * * *").unwrap().describe(), "every 15 minutes");
    /// assert!(CronExpression::parse("0 9 * * MON").unwrap_err().contains("day of week"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(format!("it is longer than {MAX_EXPRESSION_BYTES} bytes"));
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            let count = fields.len();
            return Err(format!(
                "it has {count} fields; give minute, hour, day of month, month, day of week"
            ));
        };
        let mut weekdays = parse_field("day of week", weekday, 0, 7)?;
        // Sunday is 0 and 7.
        if weekdays.contains(7) {
            weekdays = FieldValues(weekdays.0 & !(1 << 7) | 1);
        }
        let cron = Self {
            text: fields.join(" "),
            minutes: parse_field("minute", minute, 0, 59)?,
            hours: parse_field("hour", hour, 0, 23)?,
            days: parse_field("day of month", day, 1, 31)?,
            months: parse_field("month", month, 1, 12)?,
            weekdays,
            limits_days: *day != "*",
            limits_weekdays: *weekday != "*",
        };
        // February 30 never comes.
        match cron.find_next(DateTime::constant(2024, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err("no date fits it".to_owned()),
        }
    }

    /// The first time after `now`, both in milliseconds since 1970.
    ///
    /// A local time that a clock change skips runs at the moment after the change; one that it repeats runs once.
    pub fn next_after(&self, now_ms: i64, zone: &TimeZone) -> Option<i64> {
        let now = Timestamp::from_millisecond(now_ms).ok()?;
        let mut from = now.to_zoned(zone.clone()).datetime();
        // At most two candidates are not later than `now`: those of an hour that is repeated.
        for _ in 0..MAX_REPEATED_MINUTES {
            let found = self.find_next(from)?;
            let at = zone.to_zoned(found).ok()?.timestamp().as_millisecond();
            if at > now_ms {
                return Some(at);
            }
            from = found;
        }
        None
    }

    /// The first local time after `from` that fits.
    fn find_next(&self, from: DateTime) -> Option<DateTime> {
        let start = from.checked_add(1.minute()).ok()?;
        let mut date = start.date();
        let mut time = Time::new(start.hour(), start.minute(), 0, 0).ok()?;
        for _ in 0..MAX_SEARCH_DAYS {
            if self.fits_date(date)
                && let Some(time) = self.find_time(time)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            time = Time::midnight();
        }
        None
    }

    /// Whether a day fits. Where both kinds of day are limited, one suffices.
    fn fits_date(&self, date: Date) -> bool {
        let by_day = self.days.contains(date.day());
        let by_weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset());
        let fits = match (self.limits_days, self.limits_weekdays) {
            (true, true) => by_day || by_weekday,
            (true, false) | (false, true) | (false, false) => by_day && by_weekday,
        };
        fits && self.months.contains(date.month())
    }

    /// The first time of a day, not before `from`.
    fn find_time(&self, from: Time) -> Option<Time> {
        let mut minute = from.minute();
        for hour in from.hour()..24 {
            if self.hours.contains(hour)
                && let Some(minute) = self.minutes.next_from(minute)
            {
                return Time::new(hour, minute, 0, 0).ok();
            }
            minute = 0;
        }
        None
    }

    /// Whether it names one moment of the hour at which most schedules begin: the full or the half hour.
    pub(crate) fn is_on_the_hour(&self) -> bool {
        self.minutes == FieldValues(1) || self.minutes == FieldValues(1 << 30)
    }

    /// What it means, in words where that is short.
    pub fn describe(&self) -> String {
        let fields: Vec<&str> = self.text.split(' ').collect();
        let step = |field: &str| field.strip_prefix("*/").and_then(|step| step.parse::<u8>().ok());
        let number = |field: &str| field.parse::<u8>().ok();
        match fields.as_slice() {
            ["*", "*", "*", "*", "*"] | ["*/1", "*", "*", "*", "*"] => "every minute".to_owned(),
            [minute, "*", "*", "*", "*"] if step(minute).is_some() => {
                format!("every {} minutes", step(minute).unwrap_or_default())
            }
            [minute, "*", "*", "*", "*"] if number(minute).is_some() => {
                format!("every hour at minute {}", number(minute).unwrap_or_default())
            }
            [minute, hour, "*", "*", days] if number(minute).is_some() && number(hour).is_some() => {
                let at = format!(
                    "{:02}:{:02}",
                    number(hour).unwrap_or_default(),
                    number(minute).unwrap_or_default()
                );
                match *days {
                    "*" => format!("every day at {at}"),
                    "1-5" => format!("on weekdays at {at}"),
                    _ => format!("at {at} when the cron expression `{}` fits", self.text),
                }
            }
            _ => format!("when the cron expression `{}` fits", self.text),
        }
    }
}

/// Candidates that may lie in an hour that a clock change repeats, and were tried already.
const MAX_REPEATED_MINUTES: usize = 24 * 60;

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses one field: a list of `*`, numbers and ranges, each with a step.
fn parse_field(name: &str, text: &str, min: u8, max: u8) -> Result<FieldValues, String> {
    let wrong = || format!("the {name} `{text}` is not `*`, {min} to {max}, a range, a list or a step");
    let number = |text: &str| match text.parse::<u8>() {
        Ok(value) if (min..=max).contains(&value) && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(value)
        }
        Ok(_) | Err(_) => Err(wrong()),
    };
    let mut values = 0u64;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().map_err(|_| wrong())?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((first, last)) => (number(first)?, number(last)?),
            // `5/10` means from 5 on.
            None if step.is_some() => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        let step = step.unwrap_or(1);
        if first > last || step == 0 {
            return Err(wrong());
        }
        for value in (first..=last).step_by(usize::from(step)) {
            values |= 1 << value;
        }
    }
    Ok(FieldValues(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, zone: &TimeZone) -> i64 {
        text.parse::<DateTime>().unwrap().to_zoned(zone.clone()).unwrap().timestamp().as_millisecond()
    }

    fn next(cron: &str, now: &str, zone: &TimeZone) -> String {
        let next = CronExpression::parse(cron).unwrap().next_after(at(now, zone), zone).unwrap();
        Timestamp::from_millisecond(next).unwrap().to_zoned(zone.clone()).datetime().to_string()
    }

    #[test]
    fn the_next_time_is_found() {
        let utc = TimeZone::UTC;
        for (cron, now, expected) in [
            ("* * * * *", "2026-03-01T10:00:00", "2026-03-01T10:01:00"),
            ("* * * * *", "2026-03-01T10:00:59", "2026-03-01T10:01:00"),
            ("*/15 * * * *", "2026-03-01T10:15:00", "2026-03-01T10:30:00"),
            ("0 9 * * 1-5", "2026-03-06T09:00:00", "2026-03-09T09:00:00"),
            ("0 9 * * 7", "2026-03-06T09:00:00", "2026-03-08T09:00:00"),
            ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
            // The 13th or a Friday.
            ("0 0 13 * 5", "2026-03-07T00:00:00", "2026-03-13T00:00:00"),
            ("0 0 14 * 5", "2026-03-13T00:00:00", "2026-03-14T00:00:00"),
            ("59 23 31 12 *", "2026-12-31T23:59:00", "2027-12-31T23:59:00"),
            ("10-20/5,40 3 * * *", "2026-03-01T03:15:30", "2026-03-01T03:20:00"),
        ] {
            assert_eq!(next(cron, now, &utc), expected, "{cron} after {now}");
        }
    }

    #[test]
    fn a_clock_change_neither_loses_nor_repeats_a_run() {
        // A zone with European summer time, without a database of zones.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(next("30 2 * * *", "2026-03-28T12:00:00", &zone), "2026-03-29T03:30:00", "skipped time");
        let first = CronExpression::parse("30 2 * * *").unwrap();
        let once = first.next_after(at("2026-10-25T00:00:00", &zone), &zone).unwrap();
        let after = first.next_after(once, &zone).unwrap();
        assert_eq!(after - once, 25 * 3_600_000, "the repeated time runs once");
    }

    #[test]
    fn what_programs_disagree_about_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "@daily",
            "0 0 L * *",
            "0 0 1W * *",
            "0 0 ? * *",
            "0 0 * JAN *",
            "0 0 * * MON",
            "*/0 * * * *",
            "5-1 * * * *",
            "+1 * * * *",
            "1,,2 * * * *",
            "0 0 30 2 *",
            "1.5 * * * *",
            "-1 * * * *",
        ] {
            assert!(CronExpression::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_next_time_is_the_first_that_fits(
            minute in 0..60i64, hour in 0..24i64, start in 0..2_000_000_000i64,
        ) {
            let cron = CronExpression::parse(&format!("{minute} {hour} * * *")).unwrap();
            let now = start * 1000;
            let next = cron.next_after(now, &TimeZone::UTC).unwrap();
            prop_assert!(next > now && next - now <= 86_400_000);
            prop_assert_eq!(next / 60_000 % 60, minute);
            prop_assert_eq!(next / 3_600_000 % 24, hour);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9*,/ a-zL?-]{0,40}") {
            if let Ok(cron) = CronExpression::parse(&text) {
                prop_assert!(cron.next_after(1_000_000_000_000, &TimeZone::UTC).is_some());
                prop_assert!(CronExpression::parse(&cron.to_string()).is_ok());
            }
        }
    }
}

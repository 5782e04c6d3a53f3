import type { SensitiveTopic } from '#contracts'

/*
 * Words that make a memory sensitive or weighty, whatever a model says of it (spec/5 "Levels"). They are wide on purpose: a false alarm
 * costs the owner one confirmation, a miss stores something private without asking. English words stand alone; Chinese words anywhere.
 */

/** English words, as one pattern over whole words; a stem may end in `\w*`. */
function english(words: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.trim().split(/\s+/).join('|').replaceAll('_', '[ -]')})(?![\\p{L}\\p{N}])`, 'iu')
}

function chinese(words: string): RegExp {
  return new RegExp(words.trim().split(/\s+/).join('|'), 'u')
}

const topics: Readonly<Record<SensitiveTopic, readonly RegExp[]>> = {
  health: [
    english(`
      health ill illness\\w* sick sickness disease\\w* disorder\\w* diagnos\\w* symptom\\w* doctor\\w* hospital\\w* clinic\\w* surger\\w*
      surgical medicat\\w* medicine\\w* prescri\\w* pills? dose dosage therap\\w* psychiatr\\w* psycholog\\w* counsel\\w* depress\\w* anxiety
      panic_attacks? bipolar autis\\w* adhd ptsd suicid\\w* self_harm\\w* cancer tumou?r\\w* diabet\\w* asthma\\w* allerg\\w* epilep\\w*
      stroke hiv aids hepatitis covid\\w* infect\\w* vaccin\\w* pregnan\\w* miscarr\\w* abortion\\w* fertility ivf menstru\\w* contracept\\w*
      disab\\w* insomnia migraine\\w* chronic addict\\w* alcoholi\\w* rehab overdos\\w* blood_pressure blood_type bmi obes\\w* overweight
      anorexi\\w* bulimi\\w* eating_disorder injur\\w* wheelchair dementia alzheimer\\w* pain`),
    chinese(`
      健康 生病 得病 患病 病情 病史 疾病 病了 重病 大病 诊断 确诊 症状 医生 医院 诊所 看病 住院 手术 吃药 服药 药物 处方 用药 治疗 化疗 心理咨询 精神科
      抑郁 焦虑 恐慌 双相 自闭 多动症 自杀 自残 轻生 癌 肿瘤 糖尿 哮喘 过敏 癫痫 中风 艾滋 肝炎 新冠 感染 疫苗 怀孕 流产 堕胎 不孕 试管
      月经 避孕 残疾 失眠 偏头痛 慢性 成瘾 戒酒 酗酒 吸毒 血压 血型 体重 肥胖 厌食 暴食 受伤 骨折 轮椅 痴呆 疼痛 高血压 心脏病`),
  ],
  money: [
    english(`
      salar\\w* wages? income earn earns earned earning earnings paid_\\d+ debt\\w* loans? mortgage\\w* savings bank\\w* account_numbers?
      credit_cards? debit_cards? credit_scores? invest\\w* stocks? shares portfolio crypto\\w* bitcoin net_worth bankrupt\\w* tax taxes
      inherit\\w* pension\\w* insurance rent\\w*_costs? lottery owe owes owed lend lent borrow\\w* financ\\w* budget\\w* afford\\w* broke
      rich wealth\\w* poor poverty alimony`),
    /[$€£¥￥]\s?\d/u,
    /\d\s?(?:dollars?|euros?|pounds?|yuan|rmb|usd|eur|cny|k a year)(?![\p{L}\p{N}])/iu,
    chinese(`
      工资 薪水 薪资 月薪 年薪 收入 奖金 存款 储蓄 银行 账户 账号 信用卡 欠款 欠债 负债 债务 贷款 房贷 车贷 借钱 还钱 投资 股票 基金 理财 炒币 比特币
      资产 财产 遗产 破产 税 养老金 社保 公积金 保险 彩票 抚养费 赡养费 没钱 很穷 有钱 万元 块钱 存了 亏了`),
  ],
  identity: [
    english(`
      passports? social_security ssn id_cards? id_numbers? identity_cards? national_id driver\\W?s?_licen[cs]e\\w* licen[cs]e_plates? visa\\w*
      citizen\\w* immigra\\w* refugee\\w* undocumented green_cards? asylum nationalit\\w* ethnic\\w* race racial born_in birth_date
      date_of_birth birthdays? birthplace home_address address\\w* phone_numbers? telephone mobile_numbers? email\\w* e-mail\\w* passwords?
      legal_name full_name real_name maiden_name criminal_record arrest\\w* convict\\w* prison jail`),
    /[\w.+-]+@[\w-]+\.[\w.-]+/u,
    /(?<!\d)(?:\+\d{1,3}[ -]?)?(?:\d[ -]?){9,12}\d(?!\d)/u,
    /\[masked:/u,
    chinese(`
      护照 身份证 证件 户口 驾照 驾驶证 车牌 签证 国籍 移民 难民 绿卡 民族 种族 籍贯 出生 生日 真名 真实姓名 本名 全名 住址 家庭地址 地址 住在 电话号码
      手机号 邮箱 微信号 密码 犯罪记录 前科 被捕 坐牢 判刑`),
  ],
  sexuality: [
    english(`
      sex sexual\\w* sexy gay lesbian\\w* bisexual\\w* homosexual\\w* heterosexual\\w* straight queer lgbt\\w* trans transgender\\w*
      nonbinary non_binary gender asexual\\w* pansexual\\w* coming_out virgin\\w* intima\\w* orgasm\\w* erotic\\w* porn\\w* fetish\\w* kink\\w*
      affair one_night_stand libido`),
    chinese(`性取向 性生活 性别 性爱 做爱 同性恋 异性恋 双性恋 同志 出柜 跨性别 变性 拉拉 处女 处男 色情 出轨 外遇 一夜情 床上 亲密关系`),
  ],
  belief: [
    english(`
      relig\\w* faith church\\w* mosque\\w* synagogue\\w* templ\\w* pray\\w* god allah jesus christ christian\\w* catholic\\w* protestant\\w*
      orthodox muslim\\w* islam\\w* jew jews jewish judaism buddh\\w* hindu\\w* sikh\\w* tao\\w* dao\\w* atheis\\w* agnostic\\w* baptis\\w*
      politic\\w* vote votes voted voting elect\\w* party_member republican\\w* democrat\\w* conservative\\w* liberal\\w* socialis\\w*
      communis\\w* fascis\\w* anarchis\\w* union_member\\w* trade_union\\w* protest\\w* ideolog\\w*`),
    chinese(`
      宗教 信仰 信教 教堂 清真寺 寺庙 祷告 祈祷 礼拜 上帝 真主 耶稣 基督 天主教 新教 东正教 穆斯林 伊斯兰 犹太 佛教 信佛 拜佛 道教 印度教 无神论
      受洗 政治 投票 选举 党员 入党 政党 民主党 共和党 保守派 自由派 社会主义 共产 工会 抗议 游行 意识形态`),
  ],
  third_person: [
    english(`
      he him his she her hers himself herself mother\\w* father\\w* mom mum mommy dad daddy parents? son sons daughter\\w* child children
      kids? baby babies brother\\w* sister\\w* siblings? twins? wife wives husband\\w* spouse\\w* partner\\w* fianc[ée]e?s? girlfriend\\w*
      boyfriend\\w* ex ex-\\w+ grandmother\\w* grandfather\\w* grandma\\w* grandpa\\w* granny grandson\\w* granddaughter\\w* grandparents?
      uncles? aunts? aunties? cousins? nephew\\w* nieces? in-laws? stepmother\\w* stepfather\\w* friends? best_friends? bestie roommates?
      flatmates? housemates? neighbou?rs? colleagues? coworkers? co-workers? boss bosses managers? supervisors? teachers? classmates?
      students? clients? patients? landlords? lovers? crush families family relatives?`),
    chinese(`
      他 她 妈妈 爸爸 母亲 父亲 爸妈 父母 老妈 老爸 儿子 女儿 孩子 小孩 宝宝 哥哥 姐姐 弟弟 妹妹 兄弟 姐妹 双胞胎 老婆 老公 妻子 丈夫 太太 先生 爱人
      对象 伴侣 未婚妻 未婚夫 女朋友 男朋友 女友 男友 前任 前男友 前女友 奶奶 爷爷 外婆 外公 姥姥 姥爷 孙子 孙女 叔叔 阿姨 舅舅 姑姑 姨妈 表哥 表姐
      表弟 表妹 堂哥 堂姐 侄子 侄女 外甥 婆婆 岳父 岳母 继父 继母 朋友 闺蜜 室友 舍友 邻居 同事 老板 领导 上司 经理 老师 同学 学生 客户 病人 房东 暗恋
      家人 亲戚`),
  ],
}

const weighty: readonly RegExp[] = [
  english(`
    die dies died dying death dead funeral\\w* kill\\w* murder\\w* marry marries married marriage wedding\\w* divorc\\w* separat\\w*
    engaged break_up broke_up breakup custody adopt\\w* birth fired laid_off unemployed resign\\w* quit_my quit_his retire\\w* emigrat\\w*
    lawsuit\\w* sue sued suing lawyer\\w* attorney\\w* court police crime\\w* criminal\\w* assault\\w* abus\\w* violen\\w* rape\\w* harass\\w*
    blackmail\\w* gun guns weapon\\w* drug drugs secret\\w* confiden\\w* never_tell homeless evict\\w*`),
  chinese(`
    死 去世 过世 逝世 葬礼 杀 结婚 婚礼 离婚 分居 订婚 分手 抚养权 领养 收养 出生 生了 被开除 被裁 失业 辞职 退休 官司 起诉 律师 法院 警察 报警 犯罪
    家暴 虐待 暴力 强奸 性骚扰 骚扰 敲诈 枪 武器 毒品 秘密 保密 别告诉 无家可归`),
]

/** The sensitive topics that a text touches, by its words (English and Chinese). */
export function sensitiveTopics(text: string): SensitiveTopic[] {
  const folded = text.normalize('NFKC')
  return (Object.keys(topics) as SensitiveTopic[]).filter((topic) => topics[topic].some((pattern) => pattern.test(folded)))
}

/** True where a text speaks of something that changes a life, a right or a trust. */
export function isHighImpact(text: string): boolean {
  const folded = text.normalize('NFKC')
  return weighty.some((pattern) => pattern.test(folded))
}

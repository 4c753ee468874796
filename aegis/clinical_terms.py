# ruff: noqa: E501
"""Terms by which clinical statements are read, English and French.

Unit: one term, as plain lower-case words. Each *group* maps a value to the words that say
it; two values of one group exclude each other (left/right, start/stop, morning/evening), so
one put in the place of another is a contradiction, not a loss. ``symptom``, ``site`` and
``test`` name clinical things; a synonym line ``a=b c`` makes the words b and c say a. The
lists are our own and were made from what clinical conversations are about, not from any
test suite. Drugs come from :mod:`aegis.lexicon`.

Constants only: :data:`GROUPS`, :data:`SYMPTOMS`, :data:`SITES`, :data:`TESTS`, :data:`STOP`,
:data:`NEGATIONS`, :data:`FILLERS` and the cues below them.
"""

from __future__ import annotations


def _group(text: str) -> dict[str, str]:
    """``"a=b c; d"`` -> {b: a, c: a, a: a, d: d}; ``_`` stands for a blank in a word."""
    found: dict[str, str] = {}
    for part in text.split(";"):
        head, _, rest = part.strip().partition("=")
        for word in [head.strip(), *rest.split()]:
            if word:
                found[word.replace("_", " ")] = head.strip()
    return found


def _list(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "en": {
        "side": _group("left; right; both=bilateral; upper; lower"),
        "daytime": _group(
            "morning=mornings am; noon=midday lunchtime; afternoon; evening=evenings; night=nights nightly"
            " overnight; bedtime"
        ),
        "day": _group(
            "monday; tuesday; wednesday; thursday; friday; saturday; sunday; today; tomorrow; yesterday; tonight"
        ),
        "month": _group(
            "january; february; march; april; june; july; august; september; october; november; december"
        ),
        "order": _group("before=prior; after=following; during; until=till"),
        "rank": _group("last=previous; next"),
        "act": _group(
            "start=started starting starts begin began begun begins initiate restart restarted"
            " resume resumed add added adding;"
            " stop=stopped stopping stops discontinue discontinued withdraw withdrawn quit cease;"
            " increase=increased increasing raise raised double doubled doubling;"
            " decrease=decreased reduce reduced reducing halve halved lowered; keep=continue continued continues continuing stay stays maintain"
        ),
        "trend": _group(
            "better=improved improving improves improvement; worse=worsened worsening worsens"
            " deteriorated"
        ),
        "level": _group("high=elevated; low; normal=fine; abnormal"),
        "severity": _group("mild=slight slightly; moderate; severe=severely terrible awful"),
        "quality": _group("dry; productive=wet; sharp=stabbing; dull=aching; constant; intermittent"),
        "size": _group("shrinking=shrinks shrunk smaller; growing=grows grown bigger larger"),
        "portion": _group("full; empty"),
        "colour": _group("green; yellow; white; red; black; brown; blue; clear"),
        "often": _group("always; sometimes=occasionally; rarely=seldom; often=frequently usually"),
        "ingest": _group("mouth=orally oral; vein=intravenous intravenously iv; muscle=intramuscular; tongue=sublingual"),
        "kind": _group("positive; negative"),
    },
    "fr": {
        "side": _group("gauche=gauches; droite=droit droits droites; both=bilatéral bilatérale deux_côtés"),
        "daytime": _group("matin=matins matinée; midi; soir=soirs soirée; nuit=nuits; coucher; après-midi"),
        "day": _group(
            "lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche; aujourd'hui; demain; hier"
        ),
        "month": _group(
            "janvier; février; mars; avril; mai; juin; juillet; août; septembre; octobre; novembre; décembre"
        ),
        "order": _group("avant=auparavant; après=ensuite; pendant=durant; jusque=jusqu'à jusqu'au"),
        "rank": _group("dernier=dernière; prochain=prochaine"),
        "act": _group(
            "commencer=commence commencez commencé débuter débute débutez reprendre reprend reprenez ajouter"
            " ajoute ajoutez ajouté;"
            " arrêter=arrête arrêtez arrêté arrêtée stopper stoppe cesser cesse suspendre suspendu;"
            " augmenter=augmente augmentez augmenté doubler double doublez;"
            " diminuer=diminue diminuez diminué réduire réduit réduisez baisser baissez;"
            " continuer=continue continuez garder garde gardez poursuivre poursuit poursuivez maintenir"
        ),
        "trend": _group("mieux=amélioré améliore; pire=aggravé aggrave empiré empire"),
        "level": _group("élevé=élevée haut haute; bas=basse; normal=normale normales normaux; anormal=anormale"),
        "severity": _group("léger=légère légèrement; modéré=modérée; sévère=terrible intense violente violent"),
        "quality": _group("sec=sèche; gras=grasse; constant=permanente permanent; intermittent"),
        "colour": _group("vert=verte verts; jaune; blanc=blanche; rouge; noir=noire; marron; clair=claire"),
        "often": _group("toujours; parfois; rarement; souvent"),
        "ingest": _group("bouche=oral orale; veine=intraveineuse; muscle=intramusculaire; langue=sublingual"),
        "kind": _group("positif=positive; négatif=négative"),
        "portion": _group("plein=pleine; vide; jeun"),
    },
}  # fmt: skip

FAMILY: dict[str, dict[str, str]] = {
    "en": _group(
        "mother=mum mom mummy mother's mum's mom's; father=dad daddy father's dad's; brother=brothers brother's;"
        " sister=sisters sister's; son=sons son's; daughter=daughters; wife; husband; grandmother=gran grandma nan;"
        " grandfather=grandad grandpa; aunt=auntie; uncle; cousin; parents; partner; girlfriend; boyfriend"
    ),
    "fr": _group(
        "mère=maman; père=papa; frère=frères; sœur=soeur sœurs soeurs; fils; fille=filles; femme=épouse;"
        " mari=époux; grand-mère=mamie; grand-père=papi; tante; oncle; cousin=cousine; parents"
    ),
}  # fmt: skip
STAFF: dict[str, dict[str, str]] = {
    "en": _group(
        "nurse=nurses; doctor=doctors physician gp; surgeon; midwife; pharmacist; paramedic=paramedics;"
        " physiotherapist=physio; specialist=consultant; receptionist; therapist; dentist"
    ),
    "fr": _group(
        "infirmière=infirmier infirmières; médecin=docteur; chirurgien=chirurgienne; sage-femme;"
        " pharmacien=pharmacienne; kiné=kinésithérapeute; ambulancier=ambulanciers; dentiste"
    ),
}  # fmt: skip
PERSONS: dict[str, dict[str, str]] = {
    "en": _group("self=i me my mine myself we us our; you=your yours; they=he she him her his hers their them"),
    "fr": _group(
        "self=je j' me m' mon ma mes moi nous on notre nos; you=vous tu votre vos te ton ta tes toi;"
        " they=il elle ils elles lui leur leurs son sa ses"
    ),
}  # fmt: skip

SYMPTOMS: dict[str, frozenset[str]] = {
    "en": _list(
        "pain pains ache aches aching hurt hurts hurting sore soreness tender cough coughing coughs fever"
        " temperature chills sweat sweats sweating nausea nauseous vomit vomiting vomited sick diarrhea"
        " constipation constipated bloating dizzy dizziness vertigo faint fainted fainting blackout blackouts"
        " seizure seizures fit fits headache headaches migraine migraines rash itch itchy itching hives swelling"
        " swollen swell swells lump lumps bruise bruising bleed bleeding blood breathless breathlessness breath"
        " breathing wheeze wheezing wheezy palpitations tight tightness numb numbness tingling weak weakness"
        " tired tiredness fatigue exhausted stiff stiffness cramp cramps discharge phlegm mucus sputum runny"
        " sneezing hoarse swallow swallowing heartburn reflux appetite weight thirst thirsty urinate urinating"
        " urine pee stool stools bowel bowels incontinence tremor shakes shaking confused confusion memory"
        " forget forgets anxious anxiety depressed depression mood sleep sleeping insomnia snore snores snoring"
        " fall falls fell fallen injury injured wound cut burn burning fracture broken sprain infection infected"
        " redness red inflamed jaundice yellow allergy allergies allergic asthma diabetes diabetic hypertension"
        " cancer tumor tumour lymphoma leukemia stroke clot embolism angina pneumonia bronchitis copd tuberculosis"
        " epilepsy arthritis gout eczema psoriasis anemia thyroid ulcer ulcers hernia appendicitis gallstones"
        " kidney_stones hepatitis cirrhosis dementia alzheimer parkinson migraine sinusitis tonsillitis measles"
        " chickenpox flu influenza covid virus pregnant pregnancy miscarriage smoke smokes smoking smoked smoker"
        " cigarettes drink drinks drinking alcohol drugs vaccinated vaccine tetanus apnea heart_attack attack"
        " cholesterol ketones sugar sugars hypo irregular disease syndrome unconscious consciousness collapse"
        " collapsed scar trauma accident bite dehydrated cramping congestion congested stuffy sinus throat earache"
        " diagnosis diagnosed condition symptoms symptom walk walking stand standing eat eating"
    ),
    "fr": _list(
        "douleur douleurs mal maux fièvre température frissons toux tousse tousser sueurs transpire nausée nausées"
        " vomit vomir vomi vomissements diarrhée diarrhées constipation constipé constipée vertige vertiges malaise"
        " évanoui évanouie convulsions convulsion crise céphalées migraine migraines éruption boutons démangeaisons"
        " gonfle gonflent gonflé gonflée œdème oedème bosse bleu saigne saignement saignements sang essoufflé"
        " essoufflée essoufflement souffle respire respirer sifflements palpitations oppression engourdi engourdie"
        " fourmillements faiblesse faible fatigué fatiguée fatigue raide raideur crampe crampes glaires crachats"
        " enrhumé rhume gorge avaler brûlures reflux appétit poids soif urine uriner urines selles incontinence"
        " tremblement tremble tremblements confus confuse confusion mémoire oublie anxieux anxieuse anxiété"
        " dépression déprimé dormir dort sommeil insomnie ronfle tombé tombée chute tomber blessure blessé plaie"
        " brûlure fracture cassé cassée entorse infection rougeur jaunisse allergie allergies allergique asthme"
        " diabète diabétique hypertension cancer tumeur lymphome avc caillot embolie angine pneumonie bronchite"
        " épilepsie arthrose goutte eczéma anémie thyroïde ulcère hernie appendicite hépatite démence maladie"
        " syndrome grippe covid virus enceinte grossesse fume fumer fumez tabac cigarettes boit alcool drogue"
        " vacciné vaccin tétanos infarctus cholestérol sucre irrégulier trouble connaissance inconscient"
        " marcher marche lever manger boire inconsciente conscient consciente accident morsure étourdi bouger opéré opérée"
    ),
}  # fmt: skip
DRUGS = _list(
    "insulin penicillin aspirin morphine cortisone steroid steroids salbutamol ventolin insuline pénicilline aspirine"
    " ibuprofène amoxicilline paracétamol doliprane morphine ventoline oméprazole"
)
"""Drugs that the drug list lacks in this spelling."""
SITES: dict[str, dict[str, str]] = {
    "en": _group(
        "head; forehead; face; eye=eyes; ear=ears; nose; jaw; tooth=teeth; neck; shoulder=shoulders;"
        " arm=arms; elbow=elbows; wrist=wrists; hand=hands; finger=fingers; thumb=thumbs; chest; rib=ribs; breast=breasts;"
        " lung=lungs; heart; back; spine; stomach; abdomen; belly=tummy; groin; hip=hips; leg=legs; thigh=thighs;"
        " knee=knees; calf=calves; shin; ankle=ankles; foot=feet; toe=toes; heel=heels; kidney=kidneys; liver; bladder;"
        " prostate; womb=uterus; ovary=ovaries; skin; scalp; spleen; nipple=nipples; brain; muscle=muscles; collarbone; buttock=buttocks; testicle=testicles; gum=gums; lip=lips; cheek=cheeks"
    ),
    "fr": _group(
        "tête; front; visage; œil=yeux oeil; oreille=oreilles; nez; mâchoire; dent=dents; cou=nuque; épaule=épaules; bras;"
        " coude=coudes; poignet=poignets; main=mains; doigt=doigts; pouce=pouces; poitrine=thorax; côte; sein=seins;"
        " poumon=poumons; cœur=coeur; dos; colonne; ventre=abdomen; estomac; aine; hanche=hanches; jambe=jambes; cuisse=cuisses;"
        " genou=genoux; mollet=mollets; cheville=chevilles; pied=pieds; orteil=orteils; talon=talons; rein=reins; foie; vessie;"
        " prostate; peau; rate; cerveau; muscle=muscles; fesse=fesses"
    ),
}  # fmt: skip
TESTS: dict[str, frozenset[str]] = {
    "en": _list(
        "pressure pulse oxygen saturation scan x-ray xray ray mri ct ecg e_c_g ekg echo ultrasound biopsy endoscopy"
        " colonoscopy test tests swab sample count cells peak flow spirometry weighs kilos bmi sugar glucose"
        " creatinine potassium sodium hemoglobin operation surgery surgical procedure injection injections"
        " vaccine dressing stitches cast splint inhaler inhalers tablet tablets pill pills capsule capsules"
        " cream ointment drops spray patch pump pen antibiotic antibiotics painkiller painkillers"
        " chemotherapy cycle radiotherapy dialysis transfusion physiotherapy referral refer"
        " ambulance hospital ward emergency appointment review follow-up prescription prescribe prescribed"
        " medication medications medicine medicines dose drug antihistamine antidepressant contraceptive"
        " supplement vitamin c-section section oximeter catheter stent pacemaker certificate study"
        " anaesthetic anesthetic rate diet exercise exercises rest fluids water feeding feed feeds bloods urine_test"
    ),
    "fr": _list(
        "tension pouls oxygène saturation scanner radio radiographie irm ecg échographie écho biopsie fibroscopie"
        " coloscopie test tests prélèvement prise analyse analyses opération chirurgie intervention piqûre injection"
        " vaccin pansement points plâtre attelle inhalateur comprimé comprimés gélule gélules cachet cachets pommade"
        " crème gouttes spray patch pompe antibiotique antibiotiques antidouleur cortisone chimiothérapie"
        " dialyse kinésithérapie ambulance pompiers samu hôpital urgences rendez-vous consultation contrôle"
        " ordonnance prescrire prescris prescrit traitement médicament médicaments dose vitamine césarienne"
        " cathéter anesthésie régime repos eau bilan poids pèse"
    ),
}  # fmt: skip

PLANS: dict[str, frozenset[str]] = {
    "en": _list(
        "see call ring come visit book arrange send return bring check carry drive driving use take avoid"
    ),
    "fr": _list(
        "voir revoir appeler appelez appelle envoie envoyer revenir revenez envoie envoyer prenez évitez venez allez"
    ),
}
FUTURE: dict[str, frozenset[str]] = {
    "en": _list("will going shall should must need needs let let's want like could would if"),
    "fr": _list("faudra ferai ferons sera fera allons devez doit doivent faut si"),
}
PAST: dict[str, frozenset[str]] = {
    "en": _list(
        "had was were ago stopped used did been went gave began started last yesterday once previously"
    ),
    "fr": _list("avait était ai a_eu ancien passé hier dernière dernier opéré tombé eu"),
}
SUSPECTED: dict[str, frozenset[str]] = {
    "en": _list(
        "maybe perhaps possibly possible probable probably suspect suspected might could think likely seems sounds looks"
        " may"
    ),
    "fr": _list(
        "peut-être possible probable probablement sans_doute suspecte semble pense pourrait"
    ),
}
CONFIRMED: dict[str, frozenset[str]] = {
    "en": _list("confirm confirms confirmed shows showed definite definitely certain diagnosed"),
    "fr": _list("confirme confirmé montre certain certaine sûr"),
}

NEGATIONS: dict[str, frozenset[str]] = {
    "en": _list(
        "not no never none nothing nobody without nor neither denies deny denied negative_for avoid excludes exclude"
        " excluded absence absent cannot hardly"
    ),
    "fr": _list(
        "pas jamais aucun aucune aucuns aucunes sans ni rien exclut exclu exclue élimine éliminé absence"
    ),
}
"""One word denies what stands around it; ``ne`` and ``rule out`` are handled in code."""
BREAKS: dict[str, frozenset[str]] = {
    "en": _list(
        "but although though because so then when if i he she we they there except since apart"
    ),
    "fr": _list(
        "mais parce car donc alors quand si je j' il elle on nous vous depuis sauf puisque"
    ),
}
"""Words after which an earlier negation no longer holds."""
YES: dict[str, frozenset[str]] = {
    "en": _list(
        "yes yeah yep yup yea aye sure correct right absolutely definitely exactly uh-huh"
    ),
    "fr": _list("oui ouais si exactement exact tout_à_fait bien_sûr voilà"),
}
NO: dict[str, frozenset[str]] = {
    "en": _list("no nope nah never none not neither"),
    "fr": _list("non aucun aucune jamais pas rien"),
}
FILLERS: dict[str, frozenset[str]] = {
    "en": _list("um uh erm er hmm mm mhm ah oh well okay ok like just really actually basically"),
    "fr": _list("euh heu hum ben bah bon voilà quoi hein alors donc ah oh enfin"),
}
STOP: dict[str, frozenset[str]] = {
    "en": _list(
        "'s a an the and or of to in on at by for with from as is are was were be been being am do does did done have has"
        " had having get gets got it its this that these those what which who whom how where why there here s t d"
        " ll re ve m o' some any much many very quite so too also than then now just about around will would can could"
        " should shall may might must if when while because not no yes okay please thanks thank doctor mister missus"
        " miss sir madam hello hi goodbye good i me my mine we us our you your he she him her his they them their"
        " up out off over again still yet even only more most less bit little lot let go goes going went come comes"
        " came take takes took taken taking put give gives gave given make makes made feel feels felt say says said"
        " know think mean see want need one ones thing things way kind sort into onto under been us ever every each"
        " other another same such own per anything something everything nothing else all us bed that's around maybe"
        " sure right tell told noticed looks look seems use uses used using happened happens keep"
    )
    - _list("left right before after never"),
    "fr": _list(
        "un une des le la les l' de du d' et ou à au aux en dans sur par pour avec sans ce cet cette ces c' ça cela il"
        " elle on nous vous ils elles je j' me m' te t' se s' lui leur y qui que qu' quoi dont où est es suis sommes"
        " êtes sont était étaient être été a as ai avons avez ont avait avoir eu fait faire fais va vais vont aller ne"
        " n' pas plus non oui si bien très trop aussi encore comme mais donc car alors puis même tout tous toute toutes"
        " peu beaucoup quand depuis votre vos notre nos mon ma mes ton ta tes son sa ses leurs bonjour merci docteur"
        " madame monsieur prend prends prenez prendre donne donnez donner mettre met semble autre chose rien est-ce"
        " faut peut peux pouvez dit dire sais fois cas lors vers chez bon bonne t-il t-elle là ici"
    ),
}  # fmt: skip
RED_FLAGS: dict[str, frozenset[str]] = {
    "en": _list(
        "allergic allergy allergies chest blood bleeding unconscious consciousness blackout blackouts seizure"
        " seizures fainted faint pregnant clot stroke cancer lymphoma breath fever attack"
    ),
    "fr": _list(
        "allergie allergies allergique poitrine sang saigne connaissance inconscient convulsions enceinte caillot avc"
        " cancer respire malaise fièvre"
    ),
}
SYNONYMS: dict[str, dict[str, str]] = {
    "en": _group(
        "stomach=belly tummy abdomen; vomiting=vomit vomited; shortness=short; breath=breathless breathlessness;"
        " medicine=medication medications medicines; doctor=physician; operation=surgery; faint=fainted passed_out;"
        " child=kid kids children; x-ray=xray; tablet=pill pills tablets; mom=mum; eczema=excema"
    ),
    "fr": _group(
        "ventre=abdomen; comprimé=cachet cachets; médicament=traitement; radio=radiographie"
    ),
}
